"""A bus with a recorded log, on which the rules decide batch by batch as an engine would, also after a kill."""

from pathlib import Path

from bus.embedded import EmbeddedBus
from bus.interface import Decided, Page
from controller_logic.replay import Replay, logged
from history.state_at import states_of
from state.cluster import MappedTopics
from state.ids import topic_hash
from state.partition import Topic
from state.policy import Policy
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import encode_cluster, encode_topics
from tests.support.lying_clocks import entries
from tests.support.random_logs import seeded

# There is no claim, because a claim is an event and would come before those of the log.
NO_CLAIM = 0
PAGES = 4


class RecordedBus:
    """The bus of one recorded log. It goes on from what is decided on the bus already."""

    def __init__(self, path: Path, seed: int, count: int) -> None:
        self.bus = EmbeddedBus(path)
        self.entries = entries([raw for _, raw in seeded(seed, count)])
        if not self.bus.last_seq():
            self.bus.load(self.entries)
        self._replay = Replay(states_of(self.bus.image()), Policy())

    def decide(self, count: int) -> int:
        """Decide the next ``count`` events as one batch, and return the seq of the last one."""
        after = self.bus.decided_seq()
        batch = self.bus.read(after, after + count)
        if not batch:
            return after
        decisions = [Decided(*one) for one in self._replay.take(list(logged(batch)))]
        pages: list[Page] = []
        for state in self._replay.states:
            assert isinstance(state.topics, MappedTopics)
            of_page: dict[int, list[Topic]] = {page: [] for page in range(PAGES)}
            for name, topic in sorted(state.topics.items()):
                of_page[topic_hash(name) % PAGES].append(topic)
            pages += [Page(state.cluster.shard, page, encode_topics(topics)) for page, topics in of_page.items()]
            pages.append(Page(state.cluster.shard, CLUSTER_PAGE, encode_cluster(state.cluster)))
        held = {(page.shard, page.page): page for page in self.bus.image().pages}
        changed = [page for page in pages if held.get((page.shard, page.page)) != page]
        self.bus.commit(NO_CLAIM, batch[-1].seq, decisions, changed)
        self.bus.passed(batch[-1].seq)
        return batch[-1].seq
