"""Server-sent events: each browser gets every section once, and then the sections that change.

Nothing is queued for a slow browser: it gets the newest state when it is ready for it.

A stream is never silent for long, so that a page can tell an engine that hangs from one where nothing happens. Each
push begins with a beat, which says when the next one comes, and how old the state is that the page shows.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from sinks.metric_snapshot import MetricSnapshot
from sinks.web.health import COMMIT_AGE_MS_MAX
from sinks.web.live import Live
from sinks.web.view import GROUPS_MAX, beat_of, cluster_of, decisions_of, encode, status_of

BROWSERS_MAX = 16
LOOK_INTERVAL_S = 0.25
# An idle engine commits more often, and each commit is pushed. So this adds pushes only while nothing is decided.
BEAT_INTERVAL_S = 2.0
# How long a standby gets to read the newest state when a browser connects.
CATCH_UP_S_MAX = 1.0
RETRY_MS = 1_000

Sections = dict[str, bytes]


class Push:
    """The streams to all browsers."""

    def __init__(
        self, snapshot: Callable[[], MetricSnapshot], live: Live, *, has_past: bool = False, cluster_name: str = ""
    ) -> None:
        self._snapshot = snapshot
        self._live = live
        # What does not change.
        self._fixed: dict[str, object] = {"has_past": has_past, "cluster_name": cluster_name}
        self._browsers = 0
        self._is_closed = False
        self._rendered: tuple[int, Sections] = (-1, {})

    @contextlib.contextmanager
    def place(self) -> Iterator[bool]:
        """Keep a place for one browser during the block, and yield whether there was one."""
        is_free = self._browsers < BROWSERS_MAX
        self._browsers += is_free
        try:
            yield is_free
        finally:
            self._browsers -= is_free

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True

    async def stream(self, may: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield the events for one browser, for as long as it ``may`` have them."""
        sent: Sections = {}
        timeline_version, silent_s = -1, 0.0
        yield b"retry: %d\n\n" % RETRY_MS
        await self._catch_up()
        while not self._is_closed and may():
            self._live.watched()
            now = self._sections()
            changed = {name: body for name, body in now.items() if sent.get(name) != body}
            sent |= changed
            if timeline_version != self._live.timeline.version:
                former, timeline_version = timeline_version, self._live.timeline.version
                buckets = self._live.timeline.since(max(former, 0))
                changed["timeline"] = encode({"all": former < 0, "buckets": buckets})
            if changed or silent_s >= BEAT_INTERVAL_S:
                beat = encode(beat_of(self._snapshot(), self._live.picture, round(BEAT_INTERVAL_S * 1000)))
                pushed = {"beat": beat} | changed
                yield b"".join(b"event: %s\ndata: %s\n\n" % (name.encode(), body) for name, body in pushed.items())
                silent_s = 0.0
            await asyncio.sleep(LOOK_INTERVAL_S)
            silent_s += LOOK_INTERVAL_S

    async def _catch_up(self) -> None:
        """Wait a little if the state to be shown is old."""
        waited_s = 0.0
        while waited_s < CATCH_UP_S_MAX and (self._live.picture.age_ms() or 0) > COMMIT_AGE_MS_MAX:
            self._live.watched()
            await asyncio.sleep(LOOK_INTERVAL_S)
            waited_s += LOOK_INTERVAL_S

    def _sections(self) -> Sections:
        """Render the sections, which are the same for all browsers, once for each version."""
        live = self._live
        if self._rendered[0] != live.version:
            version = live.version
            decisions = decisions_of(live.recent.groups(GROUPS_MAX), live.dropped, live.timeline.totals)
            self._rendered = (
                version,
                {"cluster": encode(cluster_of(live.picture, live.state_times)), "decisions": encode(decisions)},
            )
        status = encode(status_of(self._snapshot()) | self._fixed)
        return {"status": status, **self._rendered[1]}
