"""Watch whether decisions can be read, because a gateway that cannot read them must not lead."""

from bus.clock import steady_ms


class ReadWatch:
    """A watch on the calls that read the bus: since when they have failed or hung."""

    def __init__(self, blind_after_s: float) -> None:
        self._blind_after_ms = blind_after_s * 1000
        self._looking_since_ms: int | None = None

    def begin(self) -> None:
        """Note that a call begins. If calls before it have failed, the time still counts from the first of them."""
        if self._looking_since_ms is None:
            self._looking_since_ms = steady_ms()

    def succeeded(self) -> None:
        """Note that a call returned, with or without news."""
        self._looking_since_ms = None

    @property
    def is_stalled(self) -> bool:
        """Say whether no call has succeeded for too long."""
        since_ms = self._looking_since_ms
        return since_ms is not None and steady_ms() - since_ms > self._blind_after_ms
