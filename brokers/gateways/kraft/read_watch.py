"""Whether decisions can be read at all: a gateway that hears of none must not lead."""

import time


class ReadWatch:
    """Time the calls to the bus that read; ``is_stalled`` says that they have come to nothing for too long."""

    def __init__(self, blind_after_s: float) -> None:
        self._blind_after_s = blind_after_s
        self._looking_since: float | None = None

    def begin(self) -> None:
        """Note that a call begins; those that failed before it count with it."""
        if self._looking_since is None:
            self._looking_since = time.monotonic()

    def succeeded(self) -> None:
        """Note that a call came back with what there is, or with nothing new."""
        self._looking_since = None

    @property
    def is_stalled(self) -> bool:
        since = self._looking_since
        return since is not None and time.monotonic() - since > self._blind_after_s
