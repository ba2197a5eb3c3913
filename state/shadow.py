"""What a bus is if it is the shadow of a cluster that Kafka's own controllers lead."""

import msgspec

from state.ids import NO_TIME


def age_of(heard_ms: int, clock_ms: int, now_ms: int) -> int:
    """Return how old what was observed is now. A recorded log, which has no ``heard_ms``, does not grow old."""
    return 0 if heard_ms == NO_TIME else max(0, now_ms - min(heard_ms, clock_ms))


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
    # By the bus's clock: when the newest observation came. NO_TIME if no running reader has told that it goes on.
    heard_ms: int = NO_TIME
    # Of the controllers' files, as far as rules read them. Dynamic settings are laid over them.
    static_settings: dict[str, str] = {}

    @property
    def refusal(self) -> str:
        """Why a request to lead something here is refused."""
        return f"this bus is the shadow of cluster {self.cluster_id}, and only observes it"

    @property
    def is_complete(self) -> bool:
        """Whether all parts of the newest operation were observed."""
        return self.part + 1 == self.parts

    def lag_ms(self, clock_ms: int) -> int | None:
        """Return how long after its time in the observed cluster the newest observation came; None if not known.

        ``clock_ms`` is that time.
        """
        return None if self.heard_ms == NO_TIME else max(0, self.heard_ms - clock_ms)
