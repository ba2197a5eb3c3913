"""How large the fields of an event may be. An event beyond these limits is malformed."""

from typing import Annotated

from msgspec import Meta

Id = Annotated[int, Meta(ge=0, le=2**31 - 1)]
# One byte in stored state.
Level = Annotated[int, Meta(ge=0, le=2**8 - 1)]
Epoch = Annotated[int, Meta(ge=0, le=2**31 - 1)]
BrokerEpoch = Annotated[int, Meta(ge=-1, le=2**63 - 1)]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
TimeMs = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(min_length=1, max_length=1_024)]
Text = Annotated[str, Meta(max_length=4_096)]
Ids = Annotated[tuple[Id, ...], Meta(max_length=1_000)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=1_000)]
Scalar = str | int | float | bool | None
Config = Annotated[dict[Name, Scalar], Meta(max_length=1_000)]
Assignment = Annotated[dict[Annotated[str, Meta(pattern=r"^(0|[1-9][0-9]{0,8})\Z")], Ids], Meta(max_length=1_000_000)]
