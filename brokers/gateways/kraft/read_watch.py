"""Watch whether decisions can be read, because a gateway that cannot read them must not lead."""

import time


class ReadWatch:
    """A watch on the calls that read the bus: since when they have failed or hung."""

    def __init__(self, blind_after_s: float) -> None:
        self._blind_after_s = blind_after_s
        self._looking_since: float | None = None

    def begin(self) -> None:
        """Note that a call begins. If calls before it have failed, the time still counts from the first of them."""
        if self._looking_since is None:
            self._looking_since = time.monotonic()

    def succeeded(self) -> None:
        """Note that a call returned, with or without news."""
        self._looking_since = None

    @property
    def is_stalled(self) -> bool:
        """Say whether no call has succeeded for too long."""
        since = self._looking_since
        return since is not None and time.monotonic() - since > self._blind_after_s
