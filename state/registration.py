"""What a broker says of itself when it registers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from state.limits import Text


class Listener(msgspec.Struct, frozen=True):
    """Name where a broker listens."""

    name: Text
    host: Text
    port: Annotated[int, Meta(ge=0, le=65_535)]
    protocol: Text = "PLAINTEXT"


class Feature(msgspec.Struct, frozen=True):
    """Name a feature and the levels of it that a broker has (KIP-584)."""

    name: Text
    min_version: Annotated[int, Meta(ge=0, le=32_767)]
    max_version: Annotated[int, Meta(ge=0, le=32_767)]
