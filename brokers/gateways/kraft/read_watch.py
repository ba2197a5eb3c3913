"""Whether decisions can be read: a gateway that cannot hear of decisions must not lead."""

import time


class ReadWatch:
    """The time since which calls that read the bus have failed or hung."""

    def __init__(self, blind_after_s: float) -> None:
        self._blind_after_s = blind_after_s
        self._looking_since: float | None = None

    def begin(self) -> None:
        """Note that a call begins. Failed calls before it count together with it."""
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
