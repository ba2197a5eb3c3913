"""The settings in brokers' own files that do not count, because the engine decides by its own values.

A broker's ``server.properties`` may say ``min.insync.replicas=2`` while the engine's value is 1. No registration says
so, but a broker answers DescribeConfigs with both: the value in force, and below it the one of its file. The gateway
that leads asks each broker after it has registered, and again until its file agrees, on a PLAINTEXT listener. For
other listeners it has no credentials, so there ``isrflow doctor --broker FILE`` compares.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, NoReturn

import structlog

from brokers.wire.catalogue import Catalogue
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import WireError
from brokers.wire.schema import Values
from state.policy import BROKER_NAMES

INTERVAL_S = 5.0
TIMEOUT_MS = 2_000
# A broker that has just registered may not listen yet.
TRIES_MAX = 3
_BYTES_MAX = 1024 * 1024
_API_KEY, _VERSION = 32, 2
_BROKER_RESOURCE, _OF_FILE = 4, 4
_CATALOGUE = Catalogue("brokers.wire.configs")
_COMMAND = "kafka-configs --alter --entity-type brokers --entity-default --add-config {}={}"

logger = structlog.get_logger()


class Asked(NamedTuple):
    """A broker in one registration, and where it listens in plain text; None if nowhere."""

    broker: int
    broker_epoch: int
    place: tuple[str, int] | None


class Overruled(NamedTuple):
    """A setting in a broker's file, its value there, and the one in force."""

    name: str
    file: str
    in_force: str


class FileSettings:
    """The settings in brokers' files that do not count. ``serving`` yields the brokers while this gateway leads.

    ``decided`` returns the engine's values. For a setting that it lacks, the value in force is the one that the broker
    names.
    """

    def __init__(self, serving: Callable[[], Iterable[Asked]], decided: Callable[[], Mapping[str, str]] = dict) -> None:
        self._serving = serving
        self._decided = decided
        # By broker: the epoch of its registration, and how often it has not answered since.
        self._tries: dict[int, tuple[int, int]] = {}
        self._overruled: dict[int, list[Overruled]] = {}

    @property
    def count(self) -> int:
        """How many settings in brokers' files do not count, as far as is known."""
        return sum(map(len, self._overruled.values()))

    async def run(self) -> NoReturn:
        """Ask until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            await self.look()

    async def look(self) -> None:
        """Ask the brokers whose files are not known to agree, and forget the brokers that are gone."""
        serving = list(self._serving())
        known = {one.broker for one in serving}
        for gone in [broker for broker in self._tries if broker not in known]:
            self._tries.pop(gone)
            self._overruled.pop(gone, None)
        for one in serving:
            epoch, tries = self._tries.get(one.broker, (one.broker_epoch, 0))
            if epoch != one.broker_epoch:
                tries = 0
                self._overruled.pop(one.broker, None)
            if tries < TRIES_MAX:
                tries = await self._tries_after(one, tries)
            self._tries[one.broker] = one.broker_epoch, tries

    async def _tries_after(self, one: Asked, tries: int) -> int:
        """Ask a broker, and log what is new. A broker whose file agrees is not asked again."""
        try:
            if one.place is None:
                tries = TRIES_MAX
                raise WireError("it has no PLAINTEXT listener")
            found = await asked(one.broker, *one.place, self._decided())
        except (OSError, TimeoutError, WireError) as error:
            if tries + 1 >= TRIES_MAX:
                why = str(error) or "it does not answer"
                logger.info("a broker's file is not compared with the engine's values", broker=one.broker, why=why)
            return tries + 1
        for name, file, in_force in found if found != self._overruled.get(one.broker) else ():
            told = {"broker": one.broker, "setting": name, "file": file, "in_force": in_force}
            logger.warning("a setting in a broker's file does not count", **told, set_it=_COMMAND.format(name, file))
        self._overruled[one.broker] = found
        return 0 if found else TRIES_MAX


async def asked(broker: int, host: str, port: int, decided: Mapping[str, str]) -> list[Overruled]:
    """Ask a broker which settings of its file are overruled.

    Raises ``OSError``, ``TimeoutError``, or ``WireError`` if it does not say.
    """
    resource = {"ResourceType": _BROKER_RESOURCE, "ResourceName": str(broker), "ConfigurationKeys": list(BROKER_NAMES)}
    values = {"Resources": [resource], "IncludeSynonyms": True}
    request = _CATALOGUE.encode_request(_API_KEY, _VERSION, 1, "isrflow", values)
    connection = await FrameConnection.open(host, port, TIMEOUT_MS, _BYTES_MAX)
    try:
        frame = await connection.ask(request, TIMEOUT_MS)
    finally:
        connection.close()
    results = _CATALOGUE.decode_response(_API_KEY, _VERSION, frame).values["Results"]
    if len(results) != 1 or results[0]["ErrorCode"]:
        raise WireError(f"it answers {[one['ErrorMessage'] or one['ErrorCode'] for one in results]}")
    return [found for config in results[0]["Configs"] if (found := _overruled(config, decided)) is not None]


def _overruled(config: Values, decided: Mapping[str, str]) -> Overruled | None:
    of_file = [one["Value"] for one in config["Synonyms"] if one["Source"] == _OF_FILE]
    in_force = decided.get(config["Name"], config["Value"])
    if not of_file or of_file[0] == in_force:
        return None
    return Overruled(config["Name"], str(of_file[0]), str(in_force))
