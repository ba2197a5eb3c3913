"""The exchange with which a connection begins under SASL: ApiVersions, SaslHandshake, SaslAuthenticate.

Requests are answered one at a time and are short. Nothing else is answered until the client has proved who it is. The
answer to a wrong proof does not say what was wrong, and it is delayed, so that guessing is slow.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from brokers.gateways.kraft.messages import (
    API_VERSIONS_KEY,
    Request,
    UnsupportedError,
    decode_request,
    encode_response,
    framed,
    versions_refusal,
)
from brokers.gateways.kraft.security.credentials import Credentials
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError
from brokers.wire.schema import Values
from brokers.wire.security.connecting import AUTHENTICATE_KEY, FRAME_BYTES_MAX, HANDSHAKE_KEY, HANDSHAKE_VERSION, PLAIN
from brokers.wire.security.scram import ScramError, ScramServer
from brokers.wire.server import NotAuthenticatedError

REQUESTS_MAX = 16
FAILED_DELAY_S = 0.1
# Not the loop's own threads: they look up host names, and all of them may wait for a name server.
VERIFIERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="sasl")
_FAILED = "Authentication failed: Invalid username or password"


class SaslExchange:
    """One connection before its client is authenticated."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        mechanisms: Sequence[str],
        credentials: Credentials,
        api_versions: Callable[[Request], Values],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._mechanisms = mechanisms
        self._credentials = credentials
        self._api_versions = api_versions
        self._mechanism = ""
        self._scram: ScramServer | None = None
        self._user = ""

    async def user(self) -> str:
        """Return the name of the user that the client has proved to be.

        Raises ``NotAuthenticatedError``, ``WireError``, ``OSError`` or ``EOFError``.
        """
        for _ in range(REQUESTS_MAX):
            frame = await self._frame()
            try:
                request = decode_request(frame)
            except UnsupportedError as error:
                await self._send(versions_refusal(error))
                continue
            if request.api_key == API_VERSIONS_KEY:
                await self._answer(request, self._api_versions(request))
            elif request.api_key == HANDSHAKE_KEY:
                await self._handshake(request)
            elif request.api_key == AUTHENTICATE_KEY:
                if await self._authenticate(request):
                    return self._user
            else:
                raise NotAuthenticatedError(f"{request.name} before authentication")
        raise NotAuthenticatedError(f"more than {REQUESTS_MAX} requests before authentication")

    async def _handshake(self, request: Request) -> None:
        asked = request.values["Mechanism"]
        error = ErrorCode.NONE
        if request.version != HANDSHAKE_VERSION:
            error = ErrorCode.UNSUPPORTED_VERSION
        elif self._mechanism:
            error = ErrorCode.ILLEGAL_SASL_STATE
        elif asked not in self._mechanisms:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        await self._answer(request, {"ErrorCode": error, "Mechanisms": list(self._mechanisms)})
        if error:
            raise NotAuthenticatedError(f"handshake: {error.name}")
        self._mechanism = asked

    async def _authenticate(self, request: Request) -> bool:
        """Answer one message of the mechanism. Return whether the exchange is complete."""
        if not self._mechanism:
            await self._answer(request, {"ErrorCode": ErrorCode.ILLEGAL_SASL_STATE})
            raise NotAuthenticatedError("SaslAuthenticate before SaslHandshake")
        data = bytes(request.values["AuthBytes"] or b"")
        try:
            # In a thread, because deriving keys from passwords takes long on purpose, and brokers are waiting.
            verify = self._plain if self._mechanism == PLAIN else self._of_scram
            answer, is_complete = await asyncio.get_running_loop().run_in_executor(VERIFIERS, verify, data)
        except ScramError as error:
            await asyncio.sleep(FAILED_DELAY_S)
            refused = {"ErrorCode": ErrorCode.SASL_AUTHENTICATION_FAILED, "ErrorMessage": _FAILED}
            await self._answer(request, refused)
            raise NotAuthenticatedError(f"{self._mechanism} of {self._user[:80]!r}: {error}") from error
        await self._answer(request, {"ErrorCode": ErrorCode.NONE, "AuthBytes": answer})
        return is_complete

    def _plain(self, data: bytes) -> tuple[bytes, bool]:
        try:
            asked, self._user, password = data.decode().split("\0")
        except ValueError:
            raise ScramError("malformed message") from None
        if asked not in ("", self._user):
            raise ScramError("the client asks to be another user")
        if not self._credentials.is_password(self._user, password):
            raise ScramError("wrong password, or no such user")
        return b"", True

    def _of_scram(self, data: bytes) -> tuple[bytes, bool]:
        if self._scram is not None:
            return self._scram.final(data), True
        self._scram = ScramServer(self._mechanism)
        self._user = self._scram.user_of(data)
        return self._scram.first(self._credentials.verifier(self._mechanism, self._user)), False

    async def _frame(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(FRAME_LENGTH_BYTES), "big", signed=True)
        if not 0 < size <= FRAME_BYTES_MAX:
            raise WireError(f"a request of {size} bytes before authentication")
        return await self._reader.readexactly(size)

    async def _answer(self, request: Request, values: dict[str, Any]) -> None:
        await self._send(framed(encode_response(request.api_key, request.version, request.correlation_id, values)))

    async def _send(self, frame: bytes) -> None:
        self._writer.write(frame)
        await self._writer.drain()
