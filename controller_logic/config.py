"""Change dynamic settings (KIP-226, 339), and act on those that the rules read."""

from collections.abc import Callable, Mapping

from controller_logic.availability import elect_all_leaderless, elect_leaderless, look_at_reassignments
from controller_logic.broker_settings import say_cluster
from controller_logic.config_limits import complaint_about_shared, complaint_about_size
from controller_logic.draft import Draft
from controller_logic.topic_draft import TopicDraft
from state.decisions import ConfigDecision
from state.events import AlterConfig
from state.ids import BROKER_ID_MAX
from state.limits import Scalar
from state.policy import TOPIC_NAMES, complaint_about
from state.reason import Reason
from state.rules import BOUNDED_RULES, PLAIN_RULES


def text_of(config: Mapping[str, Scalar]) -> dict[str, str | None]:
    """Write values as Kafka does, as text, in order of key; None stays None."""
    return {key: _text(config[key]) for key in sorted(config)}


def _text(value: Scalar) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def complaint_about_topic_config(draft: Draft, config: Mapping[str, str | None]) -> str | None:
    """Say what is wrong with a topic's settings, as far as the rules read them; None when nothing is."""
    return _first_complaint(draft, config, TOPIC_NAMES)


def complaint_about_growth(draft: Draft, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    """Say what of settings, as they would stand, no bus could carry; rules of before the limits know of none."""
    return complaint_about_size(before, after) if draft.rules_version >= BOUNDED_RULES else None


def _complaint_about_sizes(draft: Draft, before: dict[str, str], after: dict[str, str]) -> str | None:
    """Say besides what of the settings that all shards have would be too large."""
    if draft.rules_version < BOUNDED_RULES:
        return None
    held = (draft.config, *draft.broker_config.values())
    return complaint_about_size(before, after) or complaint_about_shared(held, (*_without(held, before), after))


def _without(held: tuple[dict[str, str], ...], one: dict[str, str]) -> list[dict[str, str]]:
    return [config for config in held if config is not one]


def _first_complaint(draft: Draft, config: Mapping[str, str | None], keys: tuple[str, ...] | None = None) -> str | None:
    plainly = draft.rules_version >= PLAIN_RULES
    for key, value in config.items():
        if value is not None and (keys is None or key in keys):
            complaint = complaint_about(key, value, plainly=plainly)
            if complaint is not None:
                return complaint
    return None


def alter_config(draft: Draft, event: AlterConfig) -> None:
    """Set or remove settings of the cluster, a topic or a broker.

    A cluster's and a broker's are answered by the shard that writes for all; a topic's by its own. With
    ``validate_only`` nothing is set.
    """
    match event.entity:
        case "cluster":
            _alter_cluster(draft, event)
        case "topic":
            if event.name is None:
                draft.answer("INVALID_REQUEST", "name the topic")
            elif draft.cluster.holds(event.name):
                draft.writes = True
                _alter_topic(draft, event.name, event)
        case "broker":
            _alter_broker(draft, event.name, event)


def _alter_cluster(draft: Draft, event: AlterConfig) -> None:
    config = text_of(event.config)
    complaint = _first_complaint(draft, config)
    if complaint is not None:
        draft.answer("INVALID_CONFIG", complaint)
        return
    after = _merged(draft.config, config)
    complaint = _complaint_about_sizes(draft, draft.config, after)
    if complaint is not None:
        draft.answer("INVALID_CONFIG", complaint)
        return
    if after != draft.config and not event.validate_only:

        def set_config() -> None:
            draft.config = after

        change_settings(draft, set_config)
        say_cluster(draft)
    draft.answer()


def change_settings(draft: Draft, change: Callable[[], None]) -> None:
    """Make a change to the cluster-wide settings, and do what follows for the partitions.

    Where unclean elections are allowed now, partitions without a leader get one at once (KIP-226);
    with another min.insync.replicas the totals are counted anew, and watermarks and reassignments looked at.
    """
    before = draft.policy
    change()
    after = draft.preview_policy()
    topics: list[TopicDraft] = []
    if after.min_insync_replicas != before.min_insync_replicas:
        topics = list(draft.topics())
        for topic in topics:
            _count_all(draft, topic, -1)
        draft.read_policy()
        for topic in topics:
            _count_all(draft, topic, 1)
            _look_at_watermarks(draft, topic)
    else:
        draft.read_policy()
    elect_all_leaderless(draft)
    for topic in topics:
        look_at_reassignments(draft, topic)


def _alter_topic(draft: Draft, name: str, event: AlterConfig) -> None:
    config = text_of(event.config)
    topic = draft.topic(name)
    if topic is None or topic.is_deleting:
        draft.answer("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name}", topic=name)
        return
    complaint = complaint_about_topic_config(draft, config)
    if complaint is not None:
        draft.answer("INVALID_CONFIG", complaint, topic=name)
        return
    after = _merged(topic.config, config)
    complaint = complaint_about_growth(draft, topic.config, after)
    if complaint is not None:
        draft.answer("INVALID_CONFIG", complaint, topic=name)
        return
    if after != topic.config and not event.validate_only:
        _count_all(draft, topic, -1)
        topic.config, topic.dirty = after, True
        topic.read_config(draft.policy)
        _count_all(draft, topic, 1)
        _say(draft, "topic", name, after)
        _look_at_watermarks(draft, topic)
        elect_leaderless(draft, topic)
        look_at_reassignments(draft, topic)
    draft.answer(topic=name)


def _alter_broker(draft: Draft, name: str | None, event: AlterConfig) -> None:
    broker = _broker_named(name)
    if broker is None:
        draft.answer("INVALID_REQUEST", "name the broker by its id")
        return
    name = str(broker)
    before = draft.broker_config.get(name, {})
    after = _merged(before, text_of(event.config))
    complaint = _complaint_about_sizes(draft, before, after)
    if complaint is not None:
        draft.answer("INVALID_CONFIG", complaint)
        return
    if after != before and not event.validate_only:
        others = {broker: held for broker, held in draft.broker_config.items() if broker != name}
        draft.broker_config = dict(sorted((others | ({name: after} if after else {})).items()))
        _say(draft, "broker", name, after)
    draft.answer()


def _broker_named(name: str | None) -> int | None:
    """Read a broker's id, which may be written with zeros before it; None when it is no id."""
    if name is None or not (name.isascii() and name.isdecimal()):
        return None
    digits = name.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(BROKER_ID_MAX)) and int(digits) <= BROKER_ID_MAX else None


def _merged(before: Mapping[str, str], config: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**before, **config}
    return {key: value for key in sorted(merged) if (value := merged[key]) is not None}


def _say(draft: Draft, entity: str, name: str | None, config: dict[str, str]) -> None:
    if draft.writes:
        said = draft.said(Reason.CONFIG_CHANGED)
        draft.decisions.append(ConfigDecision(**said, entity=entity, name=name, config=config))


def _count_all(draft: Draft, topic: TopicDraft, sign: int) -> None:
    for partition in topic.partitions:
        draft.count(topic, partition, sign)


def _look_at_watermarks(draft: Draft, topic: TopicDraft) -> None:
    draft.moved.update((topic.topic, p.partition) for p in topic.partitions if p.log_end_offsets)
