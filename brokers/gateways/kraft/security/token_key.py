"""The key from which gateways and brokers derive what proves a delegation token: an HMAC of its id (KIP-48).

So the HMAC is stored nowhere. To find the token that a client proves, a gateway derives the HMAC of every token.
"""

import hmac
from collections.abc import Mapping

from brokers.gateways.kraft.security.settings import secret_in
from state.entity import TOKEN, TOKEN_ID, Entity

# The settings of a broker, which has the key itself, and of a gateway, which has a file with it.
BROKERS_KEY, GATEWAYS_KEY = "delegation.token.secret.key", "delegation.token.secret.key.file"


class TokenKey:
    """The key, read once. Nothing shows it."""

    def __init__(self, file: str) -> None:
        self._key = secret_in(GATEWAYS_KEY, file).encode() if file else b""
        # The entities that were last looked through, and their tokens by what proves them. Both change together,
        # because several threads read them.
        self._known: tuple[Mapping[str, Entity], dict[bytes, Entity]] = ({}, {})

    @property
    def is_enabled(self) -> bool:
        """Whether there are delegation tokens at all: as in Kafka, whether there is a key."""
        return bool(self._key)

    def is_key(self, key: str) -> bool:
        """Return whether this is the key."""
        return hmac.compare_digest(self._key, key.encode())

    def hmac_of(self, token_id: str) -> bytes:
        """Return what proves a token."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def token_of(self, proof: bytes, entities: Mapping[str, Entity]) -> Entity | None:
        """Return the token that ``proof`` is the HMAC of, or None."""
        of, found = self._known
        if of is not entities:
            tokens = (one for one in entities.values() if one.entity_type == TOKEN)
            found = {self.hmac_of(str(one.names[TOKEN_ID])): one for one in tokens}
            self._known = (entities, found)
        return found.get(proof)
