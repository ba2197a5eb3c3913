"""Write a batch, and do what follows its commit.

What follows may fail after the decisions are on the bus. A query that ended because of it would take them for not
written: it would move a good checkpoint aside, and end the job the second time. So the failure of a part is counted and
logged once with its traceback. The other parts and the query go on.

The exception is the tick that tells what is undecided. The next batch depends on it (``deadlines``), so its failure is
an error of the bus.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import structlog

from bus.clock import now_ms
from bus.decided_runs import runs_in
from bus.interface import Bus, Decided
from conf.settings import Settings
from controller_logic.balance import event_of
from sinks.decision_log import DecisionLog, WrittenBatch
from sinks.metrics import Metrics
from sinks.web.site import Site
from state.cluster import Cluster
from state.decisions import Imbalance, decode
from state.stored.codec import decode_cluster, decode_without_brokers
from streaming.checkpoint_place import checkpoint_of
from streaming.engine_clock import SkewLog
from streaming.engine_log import EngineLog
from streaming.tenure import Tenure

_IMBALANCE = b"imbalance"

logger = structlog.get_logger("isrflow.job")


class BatchWriter:
    """The writer of the batches of one claim."""

    def __init__(self, bus: Bus, settings: Settings, tenure: Tenure, metrics: Metrics, site: Site) -> None:
        self._bus = bus
        self._tenure = tenure
        # The job ends its ticks before its last batch may be written.
        self._ticker = tenure.ticker
        self._metrics = metrics
        self._site = site
        self._decisions = DecisionLog(bus, tenure.controller_epoch, tenure.deadlines.check)
        self._skew = SkewLog()
        self._log = EngineLog(settings, checkpoint_of(settings), tenure.controller_epoch)
        self._failed: set[str] = set()

    def write(self, outcomes: Iterable[bytes]) -> None:
        """Commit a batch's outcomes. Raises what ``DecisionLog.write`` and ``Bus.tell_undecided`` do."""
        written = self._decisions.write(outcomes)
        if written is None:
            return
        clusters: list[Cluster] = []
        self._do("state", lambda: clusters.extend(clusters_of(written.clusters)))
        self._do("log", lambda: self._log.committed(written.through, written.decisions))
        self._do("imbalance", lambda: self._bus.publish_own(feedback_events(written.decisions)))
        if clusters:
            self._do("clock", lambda: self._decided(written, clusters))
        self._do("metrics", lambda: self._count(written, clusters))
        page = (written.through, clusters, written.pages, written.decisions)
        self._do("page", lambda: self._site.committed(*page))
        if self._tenure.deadlines.should_tell(written.through):
            self._ticker.tell_undecided(written.through)

    def _do(self, part: str, follow: Callable[[], object]) -> None:
        try:
            follow()
        except Exception:
            self._metrics.failed_after_commit(part)
            if part not in self._failed:
                self._failed.add(part)
                logger.exception("the decisions are written, but what follows failed; deciding goes on", part=part)

    def _decided(self, written: WrittenBatch, clusters: list[Cluster]) -> None:
        cluster = clusters[0]
        self._tenure.deadlines.decided(cluster)
        # The clock of a shadow is that of the observed cluster, and the engine's goes on by itself.
        if cluster.shadow is None:
            self._ticker.decided(written.through, cluster.clock_ms)
            self._skew.decided(cluster)

    def _count(self, written: WrittenBatch, clusters: list[Cluster]) -> None:
        self._metrics.committed(
            decisions=written.decisions,
            clusters=clusters,
            through=written.through,
            last_seq=self._bus.due_seq(written.through),
            now_ms=now_ms(),
            engine_ms=self._tenure.clock.read_ms(),
            clock_steps=self._tenure.clock.steps,
        )


def clusters_of(bodies: Sequence[bytes]) -> Iterator[Cluster]:
    """Yield the shards' cluster parts. Only the first has brokers, because they are the same in all."""
    yield from map(decode_cluster, bodies[:1])
    yield from map(decode_without_brokers, bodies[1:])


def feedback_events(decisions: Sequence[Decided]) -> list[bytes]:
    """Return a batch's counts of imbalance as events, so that all shards see them. Publish them after the commit.

    If the process is killed between the two, one balance check is lost, and the next one makes up for it. An event that
    is published twice takes effect once.
    """
    found = [decode(run.text) for run in runs_in(decisions) if run.kind == _IMBALANCE]
    return [msgspec.json.encode(event_of(decision)) for decision in found if isinstance(decision, Imbalance)]
