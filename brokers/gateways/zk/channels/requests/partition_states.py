"""How requests describe partitions. Each description is encoded once, and goes to all brokers that need it.

Every broker hears of every partition. If ten brokers are told of 20,000 new partitions, UpdateMetadata requests have
200,000 descriptions, of which 20,000 differ. Encoding each one again was most of a gateway's work.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import CATALOGUE, LEADER_AND_ISR, UPDATE_METADATA, Versions
from brokers.wire.schema import Encoded, Values
from state.decisions import LeaderAndIsr

# Kafka's LeaderAndIsr.LeaderDuringDelete, which removes a partition from a broker's metadata.
LEADER_DURING_DELETE = -2
# Older LeaderAndIsr requests cannot say that a leader recovers.
RECOVERY_VERSION_MIN = 6
RECOVERY = {"RECOVERED": 0, "RECOVERING": 1}
# How many descriptions of each kind are kept, at some 300 bytes each. Brokers are told of the same partitions at nearly
# the same time, so older descriptions are rarely needed again.
KEPT_MAX = 100_000

_TOPICS = ("TopicStates",)
_PARTITIONS = ("TopicStates", "PartitionStates")

Key = TypeVar("Key", bound=Hashable)


class _Kept(NamedTuple):
    """What a description was made of, and the description."""

    decision: LeaderAndIsr
    version: int
    encoded: Encoded


class MetadataPart:
    """Some partitions as they were decided at one time, for an UpdateMetadata request to each broker."""

    def __init__(self, known: Sequence[tuple[Place, LeaderAndIsr, int]]) -> None:
        self.known = known
        # The view's ``online_changes`` when the topics were encoded.
        self.online_changes = -1
        self.topics: list[Encoded] = []


class PartitionStates:
    """Descriptions of the partitions in ``view``, for requests of one controller epoch.

    ``version`` is the partition epoch as brokers know it.
    """

    def __init__(self, view: ClusterView, controller_epoch: int, versions: Versions) -> None:
        self._view = view
        self._controller_epoch = controller_epoch
        self._versions = versions
        # The parts made since the view last changed, as long as a broker has yet to be told of them.
        self._parts: WeakValueDictionary[tuple[Place, ...], MetadataPart] = WeakValueDictionary()
        self._changes = 0
        self._metadata: dict[Place, _Kept] = {}
        # By place, and whether the replica is new.
        self._roles: dict[tuple[Place, bool], _Kept] = {}
        # The view's ``online_changes`` when ``_metadata`` was begun.
        self._online_changes = 0

    def part(self, places: tuple[Place, ...]) -> MetadataPart:
        """Note what is decided now about partitions. All brokers that are told of them now share one part."""
        view = self._view
        if self._changes != view.changes:
            self._parts.clear()
            self._changes = view.changes
        found = self._parts.get(places)
        if found is None:
            decisions = [(place, one) for place in places if (one := view.partition(place)) is not None]
            found = self._parts[places] = MetadataPart([(place, one, view.version(one)) for place, one in decisions])
        return found

    def topics_of(self, part: MetadataPart) -> list[Encoded]:
        """Describe the partitions of a part, by topic."""
        online_changes = self._view.online_changes
        if part.online_changes != online_changes:
            described = (
                (place.topic, decision.topic_id, self.metadata(place, decision, version))
                for place, decision, version in part.known
            )
            part.topics = self.by_topic(UPDATE_METADATA, described)
            part.online_changes = online_changes
        return part.topics

    def by_topic(self, api_key: int, described: Iterable[tuple[str, str, Encoded]]) -> list[Encoded]:
        """Group descriptions by topic. Each comes with its topic's name and id."""
        topics: dict[tuple[str, str], list[Encoded]] = {}
        for name, topic_id, encoded in described:
            topics.setdefault((name, topic_id), []).append(encoded)
        version = self._versions.of(api_key)
        values = [
            {"TopicName": name, "TopicId": topic_id, "PartitionStates": partitions}
            for (name, topic_id), partitions in topics.items()
        ]
        return [CATALOGUE.encode_part(api_key, version, _TOPICS, one) for one in values]

    def metadata(self, place: Place, decision: LeaderAndIsr, version: int) -> Encoded:
        """Describe a partition for the metadata of any broker."""
        if self._online_changes != self._view.online_changes:
            self._metadata.clear()
            self._online_changes = self._view.online_changes
        kept = self._metadata.get(place)
        if kept is None or kept.decision is not decision or kept.version != version:
            encoded = self._encoded(UPDATE_METADATA, self._known(place, decision, version))
            kept = _keep(self._metadata, place, _Kept(decision, version, encoded))
        return kept.encoded

    def deleted(self, place: Place, decision: LeaderAndIsr, version: int) -> Encoded:
        """Describe a partition whose topic is deleted."""
        values = self._known(place, decision, version) | {"Leader": LEADER_DURING_DELETE}
        return self._encoded(UPDATE_METADATA, values)

    def role(self, place: Place, decision: LeaderAndIsr, version: int, is_new: bool) -> Encoded:
        """Describe a partition for a broker that has a replica of it."""
        kept = self._roles.get((place, is_new))
        if kept is None or kept.decision is not decision or kept.version != version:
            encoded = self._encoded(LEADER_AND_ISR, self._followed(decision, version, is_new))
            kept = _keep(self._roles, (place, is_new), _Kept(decision, version, encoded))
        return kept.encoded

    def _encoded(self, api_key: int, values: Values) -> Encoded:
        return CATALOGUE.encode_part(api_key, self._versions.of(api_key), _PARTITIONS, values)

    def _known(self, place: Place, decision: LeaderAndIsr, version: int) -> Values:
        return {
            "PartitionIndex": decision.partition,
            "ControllerEpoch": self._controller_epoch,
            "Leader": decision.leader,
            "LeaderEpoch": decision.leader_epoch,
            "Isr": decision.isr,
            "ZkVersion": version,
            "Replicas": decision.replicas,
            "OfflineReplicas": [replica for replica in decision.replicas if not self._view.has_online(replica, place)],
        }

    def _followed(self, decision: LeaderAndIsr, version: int, is_new: bool) -> Values:
        values = {
            "PartitionIndex": decision.partition,
            "ControllerEpoch": self._controller_epoch,
            "Leader": decision.leader,
            "LeaderEpoch": decision.leader_epoch,
            "Isr": decision.isr,
            "PartitionEpoch": version,
            "Replicas": decision.replicas,
            "AddingReplicas": decision.adding_replicas,
            "RemovingReplicas": decision.removing_replicas,
            "IsNew": is_new,
        }
        if self._versions.leader_and_isr >= RECOVERY_VERSION_MIN:
            values["LeaderRecoveryState"] = RECOVERY[decision.leader_recovery_state]
        return values


def _keep(kept: dict[Key, _Kept], key: Key, one: _Kept) -> _Kept:
    if len(kept) >= KEPT_MAX and key not in kept:
        kept.clear()
    kept[key] = one
    return one
