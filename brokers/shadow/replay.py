"""Records applied to the image of the cluster, with what each of them changes."""

from msgspec import UnsetType

from brokers.shadow.causes import Effect
from brokers.shadow.cluster_image import LEADER_UNCHANGED, ClusterImage, MisfitError
from brokers.shadow.operation import At, Note
from brokers.shadow.touched import Touched
from brokers.wire.metadata.record_frame import Record


class Replay:
    """The image at the newest record. What does not fit it is noted."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.notes: list[Note] = []
        self.at = At(0, 0, 0)

    def applied(self, at: At, record: Record) -> bool:
        """Apply a record, and return whether it fits."""
        self.at = at
        try:
            self.image.apply(record)
        except MisfitError as error:
            self.notes.append(Note(at.offset, str(error)))
            return False
        return True

    def effect_of(self, at: At, record: Record) -> Effect | None:
        """Apply a partition change, and return its effect; None if it does not fit."""
        topic_id, number = record.values["TopicId"], record.values["PartitionId"]
        before = self.image.partitions.get(topic_id, {}).get(number)
        if not self.applied(at, record) or before is None:
            return None
        after = self.image.partitions[topic_id][number]
        return Effect(topic_id, number, before, after, record.values["Leader"] != LEADER_UNCHANGED)

    def touch(self, touched: Touched, effect: Effect) -> None:
        """Note what a partition change led to."""
        touched.partition(self.image.topics[effect.topic_id], effect.number, effect.after)

    def touch_broker(self, touched: Touched, at: At, record: Record, broker: int | UnsetType) -> None:
        """Apply a record about a broker, and note the broker as it is then."""
        if not self.applied(at, record) or isinstance(broker, UnsetType):
            return
        if (held := self.image.brokers.get(broker)) is None:
            touched.unregistered[broker] = None
        else:
            touched.broker(held)

    def touch_with(self, touched: Touched, at: At, record: Record) -> None:
        """Apply any other record, and note what it changed."""
        values, cleared = record.values, list[tuple[str, int]]()
        name = self.image.topics.get(values.get("TopicId", ""), "")
        if record.name == "ClearElrRecord":
            cleared = self.image.with_elr(values["TopicName"])
        if not self.applied(at, record):
            return
        match record.name:
            case "TopicRecord":
                touched.topic(values["Name"], values["TopicId"])
            case "RemoveTopicRecord":
                touched.deleted_topic(name, values["TopicId"])
            case "PartitionRecord":
                number = values["PartitionId"]
                touched.partition(name, number, self.image.partitions[values["TopicId"]][number])
            case "ClearElrRecord":
                for topic_id, number in cleared:
                    touched.partition(self.image.topics[topic_id], number, self.image.partitions[topic_id][number])
            case "ConfigRecord":
                touched.setting(values["ResourceType"], values["ResourceName"], values["Name"], values["Value"])
            case "FeatureLevelRecord":
                touched.feature(values["Name"], values["FeatureLevel"])
            case _:
                touched.count(record)
