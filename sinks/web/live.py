"""The cluster as the page shows it now. A thread of its own, limited to a share of one core, keeps it up to date."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

import msgspec
import structlog

from bus.interface import Bus, BusError, Decided
from sinks.web.counted_pages import CountedPages
from sinks.web.inbox import Inbox, Received
from sinks.web.partitions import Summary
from sinks.web.picture import Picture, observed_in
from sinks.web.recall import Recall
from sinks.web.recent import Recent
from sinks.web.seen import Seen, seen
from sinks.web.state_times import StateTimes
from sinks.web.timeline import Timeline
from state.broker import Broker
from state.cluster import Cluster
from state.policy import Policy
from state.risk import racks_of
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import CodecError, decode_cluster

INTERVAL_S = 0.25
RETRY_S = 5.0
# How often a standby reads the state, and for how long after a browser last showed the page.
STANDBY_INTERVAL_S = 2.0
WATCHED_S = 30.0
# After each piece of work the thread rests this many times as long as the work took.
REST_FACTOR = 3.0
# The size of a piece of work, small enough not to slow a batch.
DECISIONS_AT_ONCE = 2_000
PAGES_AT_ONCE = 16
ROWS_MAX = 500

logger = structlog.get_logger("isrflow.page")
_T = TypeVar("_T")


class Live(threading.Thread):
    """The thread that empties the inbox, and updates ``picture``, ``recent``, ``timeline`` and ``state_times``.

    A standby has no batches, so there the thread reads the bus. It calls ``looks`` at each look, and after each change
    that a batch made ``told`` with the summary of all partitions, or None while it is not known.
    """

    def __init__(
        self,
        bus: Bus,
        inbox: Inbox,
        is_standby: Callable[[], bool],
        told: Callable[[Summary | None], None],
        looks: Callable[[], None],
    ) -> None:
        super().__init__(name="isrflow-page", daemon=True)
        self._bus = bus
        self._inbox = inbox
        self._is_standby = is_standby
        self._told = told
        self._looks = looks
        self._stopping = threading.Event()
        self.picture = Picture()
        self.recent = Recent()
        self.timeline = Timeline()
        self.state_times = StateTimes()
        # Rises with each change of the picture, and with each piece of decisions.
        self.version = 0
        self.dropped = 0
        self._pages = CountedPages(Policy(), {})
        self._brokers: dict[int, Broker] = {}
        # The last event of the image that was read.
        self._image_seq = -1
        # The newest event whose decisions were taken in.
        self._told_seq: int | None = None
        self._watched_s = -math.inf
        self._read_again_s = -math.inf

    def topics_like(self, text: str, count: int) -> tuple[list[str], int]:
        """Return the first names of topics that contain ``text``, in any case, and how many do.

        Names that begin with it come first.
        """
        wanted = text.lower()
        # Copied, because this thread changes it while another one asks.
        found = [name for name in list(self._pages.facts) if wanted in name.lower()]
        found.sort(key=lambda name: (not name.lower().startswith(wanted), name))
        return found[:count], len(found)

    def watched(self) -> None:
        """Note that a browser shows the page.

        A standby reads the bus only then, because it has to read the whole state.
        """
        self._watched_s = time.monotonic()

    def run(self) -> None:
        wait_s = INTERVAL_S
        while not self._stopping.wait(wait_s):
            began_s = time.thread_time()
            try:
                self.look()
                wait_s = max(INTERVAL_S, (time.thread_time() - began_s) * REST_FACTOR)
            except (BusError, CodecError, msgspec.MsgspecError) as error:
                logger.warning("the page cannot read the state now; trying again later", why=str(error))
                wait_s = self._begin_again()
            # Without this thread the page would show an old state and not say so.
            except Exception as error:
                logger.error("the page's thread failed; it begins again with what is on the bus", error=repr(error))
                wait_s = self._begin_again()

    def _begin_again(self) -> float:
        """Prepare to read the state from the bus at the next look, and return how long to wait for that."""
        self._inbox.begin()
        # The metrics would go on naming partitions that may be well by now.
        self._told(None)
        return RETRY_S

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Take in what batches left in the inbox. Raises ``BusError`` or ``CodecError``."""
        self._looks()
        if self._is_standby():
            self._look_at_the_bus()
            return
        if self._told_seq is None:
            self._recall(self._bus.decided_seq())
        taken = self._inbox.take()
        self.dropped += taken.dropped
        if taken.is_stale and taken.decisions:
            # Another job may have decided meanwhile.
            self._recall(taken.decisions[0][0].seq - 1)
        if taken.is_stale and (taken.clusters or self._image_seq < 0):
            self._read_image(taken.committed_steady_ms)
        elif taken.is_stale:
            self._inbox.begin()
        if taken.clusters:
            self._take_state(taken)
        self._take_decisions(taken)
        # What the decisions up to here said of brokers is known already.
        self.state_times.seek(self._bus, self._brokers.values())

    def _look_at_the_bus(self) -> None:
        is_due = time.monotonic() >= self._read_again_s and time.monotonic() - self._watched_s < WATCHED_S
        if is_due and self._bus.decided_seq() != self._image_seq:
            self._read_image()
            self.state_times.seek(self._bus, self._brokers.values(), Recall(self._bus, self._rest))
            self._read_again_s = time.monotonic() + STANDBY_INTERVAL_S

    def _take_state(self, taken: Received) -> None:
        cluster = taken.clusters[0]
        if cluster.policy != self._pages.policy or racks_of(cluster.brokers) != self._pages.racks:
            self._read_image(taken.committed_steady_ms)
            return
        pages = {place: body for place, (through, body) in taken.pages.items() if through > self._image_seq}
        for piece in self._pieces(pages.items(), PAGES_AT_ONCE):
            if not self._pages.put(piece):
                self._read_image(taken.committed_steady_ms)
                return
        is_changed = bool(pages) or cluster.brokers != self._brokers
        self._brokers = cluster.brokers
        self._show(taken.through, cluster, taken.committed_steady_ms, is_changed)

    def _read_image(self, committed_steady_ms: int | None = None) -> None:
        image = self._bus.image()
        clusters = [decode_cluster(page.body) for page in image.pages if page.page == CLUSTER_PAGE]
        cluster = clusters[0] if clusters else Cluster()
        self._brokers = cluster.brokers
        self._pages = CountedPages(cluster.policy, racks_of(cluster.brokers))
        held = [((page.shard, page.page), page.body) for page in image.pages if page.page != CLUSTER_PAGE]
        for piece in self._pieces(held, PAGES_AT_ONCE):
            self._pages.learn(body for _, body in piece)
        for piece in self._pieces(held, PAGES_AT_ONCE):
            self._pages.put(piece)
        self._image_seq = image.seq
        self._show(image.seq, cluster, committed_steady_ms, True)

    def _show(self, seq: int, cluster: Cluster, committed_steady_ms: int | None, is_changed: bool) -> None:
        picture = self.picture
        if is_changed:
            pages = self._pages
            picture = Picture(
                brokers=self._brokers,
                topics=len(pages.facts),
                partitions=pages.partitions,
                summary=pages.sum.summary(ROWS_MAX),
            )
        self.picture = msgspec.structs.replace(
            picture,
            seq=seq,
            bus_clock_ms=cluster.clock_ms - (cluster.clock_skew_ms or 0),
            committed_steady_ms=committed_steady_ms,
            observed=observed_in(cluster),
        )
        if not is_changed:
            return
        self.version += 1
        # A standby's picture grows old as soon as no browser shows the page.
        if not self._is_standby():
            self._told(picture.summary)

    def _recall(self, through: int) -> None:
        """Take in the newest decisions through a seq, which were made before this thread or its job began."""
        if self._told_seq is not None and through <= self._told_seq:
            return
        former, self._told_seq = self._told_seq, through
        try:
            recalled = Recall(self._bus, self._rest).newest(former or 0, through)
        except BusError:
            # The next look recalls them again, so that none is left out.
            self._told_seq = former
            raise
        for piece in self._pieces(recalled, DECISIONS_AT_ONCE):
            self._take_in(piece)

    def _take_decisions(self, taken: Received) -> None:
        for decisions in taken.decisions:
            told = self._told_seq or 0
            # Decisions up to ``told`` were recalled from the bus already.
            self.take_decisions(decisions if decisions[0].seq > told else [one for one in decisions if one.seq > told])

    def take_decisions(self, decisions: Sequence[Decided]) -> None:
        """Take in decisions. They must be later than those taken in before."""
        if decisions:
            self._told_seq = decisions[-1].seq
        for piece in self._pieces(decisions, DECISIONS_AT_ONCE):
            self._take_in(seen(piece))

    def _take_in(self, ones: Iterable[tuple[Seen, bytes]]) -> None:
        for one, body in ones:
            self.recent.add(one, body)
            self.timeline.add(one)
            self.state_times.add(one)
        self.version += 1

    def _pieces(self, all_: Iterable[_T], size: int) -> Iterable[list[_T]]:
        """Cut work into pieces, and rest after each full one."""
        rest = iter(all_)
        while piece := list(islice(rest, size)):
            began_s = time.thread_time()
            yield piece
            if len(piece) == size and self._rest(began_s):
                return

    def _rest(self, began_s: float) -> bool:
        """Rest after work that began at ``began_s`` of the thread's time. Return True if the thread stops."""
        return self._stopping.wait((time.thread_time() - began_s) * REST_FACTOR)
