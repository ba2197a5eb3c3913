"""What a broker says about itself when it registers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from state.limits import Text


class Listener(msgspec.Struct, frozen=True):
    """An address on which a broker listens."""

    name: Text
    host: Text
    port: Annotated[int, Meta(ge=0, le=65_535)]
    protocol: Text = "PLAINTEXT"


class Feature(msgspec.Struct, frozen=True):
    """A feature and the levels of it that a broker supports (KIP-584)."""

    name: Text
    min_version: Annotated[int, Meta(ge=0, le=32_767)]
    max_version: Annotated[int, Meta(ge=0, le=32_767)]
