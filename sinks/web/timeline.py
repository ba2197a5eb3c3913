"""The time line: how many elections, ISR changes and other decisions there were in each second and each minute."""

from collections import Counter, deque

from sinks.web.seen import LANES, Seen

# The width of a bucket, and how many of that width are kept: ten minutes of seconds, and a day of minutes.
WIDTHS_MS = {1_000: 600, 60_000: 1_440}
Bucket = list[int]  # its start in ms, one count for each lane, the version of its last change


class Timeline:
    """Counts by time, in a limited number of buckets. There is no bucket for a time without decisions."""

    def __init__(self) -> None:
        # Rises with each change.
        self.version = 0
        # By lane, of all times.
        self.totals: Counter[str] = Counter(dict.fromkeys(LANES, 0))
        self._buckets: dict[int, deque[Bucket]] = {
            width_ms: deque(maxlen=count) for width_ms, count in WIDTHS_MS.items()
        }

    def add(self, one: Seen) -> None:
        """Count a decision. One that is older than the newest bucket is counted in the newest bucket."""
        version = self.version + 1
        lane = 1 + LANES.index(one.lane)
        for width_ms, buckets in self._buckets.items():
            start_ms = one.time_ms - one.time_ms % width_ms
            if not buckets or buckets[-1][0] < start_ms:
                buckets.append([start_ms, *([0] * len(LANES)), version])
            newest = buckets[-1]
            newest[lane] += 1
            newest[-1] = version
        self.totals[one.lane] += 1
        # Last, because a browser that has seen this version does not ask again for what changed before it.
        self.version = version

    def since(self, version: int) -> dict[str, list[Bucket]]:
        """Return the buckets that changed after ``version``, by their width. For version 0 these are all buckets."""
        changed: dict[str, list[Bucket]] = {}
        for width_ms, buckets in self._buckets.items():
            found = []
            # Copied, because another thread adds buckets.
            for bucket in reversed(list(buckets)):
                if bucket[-1] <= version:
                    break
                found.append(bucket[:-1])
            changed[str(width_ms)] = found[::-1]
        return changed
