"""What a broker has yet to be told. While it is slow, the decisions on a partition are coalesced to the newest.

A batch names partitions and holds no states. States are read from the view when the batch is sent, so that a slow
broker hears only the newest decision. An order to remove a log must not overtake, or be overtaken by, the news of a new
topic of the same name. So there are several batches, and such a partition begins another one.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from brokers.gateways.zk.channels.requests.news import Everything, News, PartitionNews, is_new
from brokers.gateways.zk.cluster_view import ClusterView, Place, TopicView
from state.decisions import BrokerDecision, LeaderAndIsr, StopReplica, TopicDecision
from state.ids import EPOCH_DURING_DELETE
from state.reason import Reason
from state.registration import Listener

# What one partition in a batch takes at most.
BYTES_EACH = 400


class Batch:
    """Partitions that a broker is told about together."""

    def __init__(self) -> None:
        # Whether the list of live brokers may differ from what the broker knows.
        self.live = False
        # The partitions of which the broker has a replica, and whether that replica is new.
        self.leader_and_isr: dict[Place, bool] = {}
        # The partitions that only its metadata needs.
        self.metadata: dict[Place, None] = {}
        # The partitions of deleted topics, with the last decision about each.
        self.deleted: dict[Place, LeaderAndIsr] = {}
        self.stops: dict[Place, StopReplica] = {}

    def __bool__(self) -> bool:
        return self.live or self.count > 0

    @property
    def count(self) -> int:
        return len(self.leader_and_isr) + len(self.metadata) + len(self.deleted) + len(self.stops)


class Pending:
    """The batches that one broker has yet to be told, in order.

    Beyond ``partitions_max`` or ``bytes_max`` all batches are forgotten, and the broker must be told everything, which
    is never more than all partitions. Only orders to stop replicas are kept, because no later decision repeats them.
    """

    def __init__(self, partitions_max: int, bytes_max: int) -> None:
        self._count_max = min(partitions_max, bytes_max // BYTES_EACH)
        self._batches: deque[Batch] = deque()
        # Whether batches were forgotten, so that everything must be told.
        self.is_overfull = False
        # The orders of batches that were forgotten.
        self._stops: dict[Place, StopReplica] = {}
        # The live brokers as last told, and which of them are online.
        self._live: list[tuple[int, Sequence[Listener], str | None]] = []
        self._online: frozenset[int] = frozenset()

    @property
    def count(self) -> int:
        return sum(batch.count for batch in self._batches)

    def take(self) -> Batch | None:
        """Return the next batch; None if there is none."""
        return self._batches.popleft() if self._batches else None

    def put_back(self, batch: Batch) -> None:
        """Take back a batch that was not sent. The live brokers may have changed since it was taken."""
        if self.is_overfull:
            # Orders that were forgotten since are newer.
            self._stops = batch.stops | self._stops
            return
        batch.live = True
        self._batches.appendleft(batch)

    def _forget_batches(self) -> None:
        for batch in self._batches:
            self._stops |= batch.stops
        self._batches.clear()
        for place in list(islice(self._stops, max(0, len(self._stops) - self._count_max))):
            # The oldest logs stay on a broker that takes no orders for so long.
            del self._stops[place]

    def tell_all(self, broker: int, everything: Everything, orders: Iterable[StopReplica] = ()) -> None:
        """Plan to tell everything: the live brokers, all partitions, this broker's replicas, and the logs to remove.

        ``orders`` are the newest events' orders to stop replicas. Earlier orders stay until they are sent.
        """
        view = everything.view
        self._forget_batches()
        former, self._stops, self.is_overfull = self._stops, {}, False
        self._note_brokers(view)
        batch = self._last()
        batch.live = True
        batch.deleted |= {place: held for place, held in view.former.items() if view.partition(place) is None}
        batch.deleted |= everything.deleting
        for place, held in everything.deleting.items():
            if broker in held.replicas:
                # The topic may wait for this broker to be back, or the order was lost. A broker without the log agrees.
                batch.stops[place] = _removal(held, broker)
        batch.metadata.update(everything.places)
        batch.leader_and_isr.update(everything.roles.get(broker, {}))
        for order in [*former.values(), *orders]:
            place = Place(order.topic, order.partition)
            known = view.partition(place)
            if broker in order.to and (known is None or broker not in known.replicas):
                batch.stops[place] = order
        self._stop_others(former, view)

    def _stop_others(self, former: Mapping[Place, StopReplica], view: ClusterView) -> None:
        """Put the removal of deleted topics' logs before the news of new topics with the same names."""
        first = Batch()
        for place, order in former.items():
            topic = view.topics.get(place.topic)
            if topic is not None and topic.topic_id != order.topic_id:
                self._last().stops.pop(place, None)
                first.stops[place] = order
        if first:
            self.put_back(first)

    def tell(self, broker: int, news: News) -> None:
        """Plan to tell what an event's decisions mean for this broker."""
        view = news.view
        for one in news.parts:
            match one:
                case PartitionNews():
                    self._partitions(broker, one)
                case LeaderAndIsr():
                    self._gone(one)
                case StopReplica() if broker in one.to:
                    self._stop(one)
                case BrokerDecision():
                    self._brokers_changed(news)
                case TopicDecision(state="deleting" | "ineligible"):
                    topic = view.topics.get(one.topic)
                    if topic is not None and topic.is_deleting:
                        self._deleted(topic)
                case TopicDecision(state="deleted"):
                    # A topic without live replicas is deleted at once, without an earlier decision that announces it.
                    removed = view.removed.get(one.topic_id)
                    if removed is not None and not removed.is_deleting:
                        self._deleted(removed)
        if self.count > self._count_max:
            self._forget_batches()
            self.is_overfull = True

    def _last(self) -> Batch:
        if not self._batches:
            self._batches.append(Batch())
        return self._batches[-1]

    def _brokers_changed(self, news: News) -> None:
        """Have every batch begin with the live brokers, because each is sent with the newest leaders."""
        live, online = self._live, self._online
        self._note_brokers(news.view)
        if self._live != live:
            self._last()
            for batch in self._batches:
                batch.live = True
        if gone := online - self._online:
            self._replicas_gone(news.held_by(gone))

    def _note_brokers(self, view: ClusterView) -> None:
        self._live = [(held.broker, held.listeners, held.rack) for held in view.live]
        self._online = frozenset(held.broker for held in view.live if view.is_online(held.broker))

    def _replicas_gone(self, places: Iterable[Place]) -> None:
        """Plan to tell which replicas are offline, even where nothing is decided about the partition."""
        last = self._last()
        if not last.stops and not last.deleted:
            last.metadata.update(dict.fromkeys(places))
            return
        for place in places:
            if place not in last.stops and place not in last.deleted:
                last.metadata[place] = None

    def _partitions(self, broker: int, news: PartitionNews) -> None:
        if any(batch.stops or batch.deleted for batch in self._batches):
            for decision in news.decisions:
                self._partition(broker, decision)
            return
        last = self._last()
        last.metadata.update(news.places)
        for place, new in news.roles.get(broker, {}).items():
            last.leader_and_isr[place] = new or last.leader_and_isr.get(place, False)

    def _partition(self, broker: int, decision: LeaderAndIsr) -> None:
        place = Place(decision.topic, decision.partition)
        if broker in decision.isr:
            self._keep_log(place, decision.topic_id)
        last = self._last()
        if place in last.stops or place in last.deleted:
            last = Batch()
            self._batches.append(last)
        last.metadata[place] = None
        if broker in decision.to:
            last.leader_and_isr[place] = is_new(broker, decision) or last.leader_and_isr.get(place, False)

    def _gone(self, decision: LeaderAndIsr) -> None:
        place = Place(decision.topic, decision.partition)
        self._forget(place)
        self._last().deleted[place] = decision

    def _keep_log(self, place: Place, topic_id: str) -> None:
        """Drop the order to remove a log: the replica was moved away, and is needed again for its records."""
        for batch in self._batches:
            if place in batch.stops and batch.stops[place].topic_id == topic_id:
                del batch.stops[place]

    def _stop(self, decision: StopReplica) -> None:
        place = Place(decision.topic, decision.partition)
        for batch in self._batches:
            batch.leader_and_isr.pop(place, None)
        self._last().stops[place] = decision

    def _deleted(self, topic: TopicView) -> None:
        for number, held in topic.partitions.items():
            place = Place(topic.name, number)
            self._forget(place)
            self._last().deleted[place] = held

    def _forget(self, place: Place) -> None:
        for batch in self._batches:
            batch.leader_and_isr.pop(place, None)
            batch.metadata.pop(place, None)


def _removal(held: LeaderAndIsr, broker: int) -> StopReplica:
    return StopReplica(
        seq=held.seq,
        controller_epoch=held.controller_epoch,
        time_ms=held.time_ms,
        reason=Reason.TOPIC_DELETED,
        topic=held.topic,
        topic_id=held.topic_id,
        partition=held.partition,
        delete=True,
        leader_epoch=EPOCH_DURING_DELETE,
        to=(broker,),
    )
