"""What a bus is if it is the shadow of a cluster that Kafka's own controllers lead."""

import msgspec


class ShadowError(Exception):
    """The bus is the shadow of a cluster, so nothing is led on it."""


class Shadow(msgspec.Struct, frozen=True, array_like=True):
    """The observed cluster, and how far its metadata log was observed."""

    cluster_id: str
    # Of the first and of the last record of the newest operation.
    offset: int
    last_offset: int
    # Of this operation: the newest part, and how many there are.
    part: int = 0
    parts: int = 1

    @property
    def refusal(self) -> str:
        """Why a request to lead something here is refused."""
        return f"this bus is the shadow of cluster {self.cluster_id}, and only observes it"

    @property
    def is_complete(self) -> bool:
        """Whether all parts of the newest operation were observed."""
        return self.part + 1 == self.parts
