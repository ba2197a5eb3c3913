"""The engine without Spark: the rules in this process, on one shard.

A shadow decides so, because its events are few, and a post-mortem should need no Java.
"""

from collections.abc import Callable

from bus.decided_runs import DecidedRuns
from bus.interface import Bus, Page
from conf.garbage import without_collections
from conf.settings import Settings
from controller_logic.guard import guarded_step
from controller_logic.replay import logged
from state.canonical import numbered_runs
from state.cluster import Cluster, State
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import decode_cluster, encode_cluster
from streaming.paged_topics import PagedTopics

# An event may have some MiB, so its publisher lets it be decided before there are too many bytes.
BATCH_EVENTS = 10_000
_SHARD, _SHARDS = 0, 1


class LayoutError(Exception):
    """The state on the bus is in more shards than one."""


class InProcessEngine:
    """Decides what is on a bus for the holder of a controller epoch. A recorded log that was loaded needs no claim: 0.

    ``tell`` gets the text of each decision that is not in columns: leaders and ISRs are.

    Raises ``LayoutError``, and ``BusError`` as the bus does.
    """

    def __init__(
        self, bus: Bus, settings: Settings, controller_epoch: int = 0, tell: Callable[[bytes], object] = len
    ) -> None:
        self._bus = bus
        self._policy = settings.policy
        self._pages = settings.pages
        self._controller_epoch = controller_epoch
        self._tell = tell
        image = bus.image()
        if any(page.shard != _SHARD for page in image.pages):
            raise LayoutError("the state on the bus is in several shards, and only 'isrflow run' decides on those")
        self._bodies = {page.page: page.body for page in image.pages}
        cluster = self._bodies.pop(CLUSTER_PAGE, None)
        self.cluster = Cluster(shard=_SHARD, shards=_SHARDS) if cluster is None else decode_cluster(cluster)
        self._decided = image.seq

    def decide(self) -> None:
        """Decide everything that is on the bus."""
        last = self._bus.last_seq()
        while self._decided < last:
            self._decide_through(min(last, self._decided + BATCH_EVENTS))

    def _decide_through(self, through: int) -> None:
        with without_collections():
            events = list(logged(self._bus.read(self._decided, through)))
            state = State(self.cluster, PagedTopics(lambda: self._bodies, _SHARDS, self._pages))
            outcome = guarded_step(state, events, self._policy, overrides={})
            topics = outcome.state.topics
            assert isinstance(topics, PagedTopics)
            changed = topics.changed_pages(outcome.changes, outcome.state.cluster.level)
            pages = [Page(_SHARD, CLUSTER_PAGE, encode_cluster(outcome.state.cluster))]
            pages += [Page(_SHARD, page, body) for page, body in changed]
            decisions = DecidedRuns(numbered_runs(outcome.parts))
            self._bus.commit(self._controller_epoch, through, decisions, pages)
        for run in decisions.runs:
            if run.columns is None:
                self._tell(run.text)
        self._bodies.update(changed)
        self.cluster = outcome.state.cluster
        self._decided = through
