"""Change dynamic settings (KIP-226, 339), and act on those that the rules read."""

from collections.abc import Collection, Mapping

import msgspec

from controller_logic import eligible_leaders, unclean_recovery
from controller_logic.availability import elect_all_leaderless, elect_leaderless, recheck_reassignments
from controller_logic.batch import Batch
from controller_logic.broker_settings import set_again, tell_cluster_settings
from controller_logic.commit_cluster import commit_broker_config, commit_settings
from controller_logic.commit_reports import commit_watermark_due
from controller_logic.commit_topic import commit_topic_config
from controller_logic.config_limits import complaint_about_shared, complaint_about_size
from controller_logic.working_topic import WorkingTopic
from state import topic_settings
from state.events import AlterConfig
from state.features import newest_metadata_version
from state.ids import broker_named
from state.limits import Scalar
from state.policy import NAMES, TOPIC_NAMES, complaint_about, for_topic, misspelt
from state.policy_fit import FITTED, TICK_INTERVAL, complaint_about_fit


def text_of(config: Mapping[str, Scalar]) -> dict[str, str | None]:
    """Write values as text, as Kafka does, in order of key; None stays None."""
    return {key: _text(config[key]) for key in sorted(config)}


def _text(value: Scalar) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def complaint_about_topic_config(batch: Batch, config: Mapping[str, str | None]) -> str | None:
    """Return what is wrong with the settings of a topic that rules read; None if nothing is."""
    return _first_complaint(config, TOPIC_NAMES) or unclean_recovery.complaint_about(batch, config)


def complaint_of_brokers(batch: Batch, config: Mapping[str, str | None]) -> str | None:
    """Return which of a topic's settings brokers behind gateways could not read; None if they can read all.

    They trust the metadata log, because Kafka's controller refuses such settings (``ControllerConfigurationValidator``)
    itself. A broker that finds one there makes no log of the topic, and does not start again. Which settings there are
    depends on the newest of the brokers.
    """
    brokers = [broker for broker in batch.state.brokers.values() if broker.is_kraft]
    if not brokers:
        return None
    level = newest_metadata_version((feature for broker in brokers for feature in broker.features), batch.state.level)
    given = ((key, value) for key, value in config.items() if value is not None)
    return next((found for pair in given if (found := topic_settings.complaint_about(*pair, level))), None)


def _complaint_about_sizes(batch: Batch, before: dict[str, str], after: dict[str, str]) -> str | None:
    """Return which settings are too large: those of the entity, or all that shards share; None if neither are."""
    held = (batch.state.config, *batch.state.broker_config.values())
    others = [config for config in held if config is not before]
    return complaint_about_size(before, after) or complaint_about_shared(held, (*others, after))


def _first_complaint(config: Mapping[str, str | None], keys: tuple[str, ...] | None = None) -> str | None:
    given = ((key, value) for key, value in config.items() if value is not None and (keys is None or key in keys))
    misspelling = _complaint_about_names(config, keys or NAMES)
    return misspelling or next((complaint for pair in given if (complaint := complaint_about(*pair))), None)


def _complaint_about_names(config: Mapping[str, str | None], names: Collection[str]) -> str | None:
    """Return which setting misspells one of ``names``; None if none does. A misspelt setting may be removed."""
    for key, value in config.items():
        meant = misspelt(key, names) if value is not None else None
        if meant is not None:
            return f"unknown setting {key!r}; did you mean {meant!r}?"
    return None


def _complaint_about_fit(batch: Batch, config: Mapping[str, str | None], after: dict[str, str]) -> str | None:
    """Return why the cluster's settings ``after`` a change cannot work together; None if they can."""
    if not FITTED & set(config):
        return None
    tick = batch.state.settings.get(TICK_INTERVAL)
    values = msgspec.to_builtins(batch.state.policy_under(after)) | ({TICK_INTERVAL: int(tick)} if tick else {})
    return complaint_about_fit(values, [key for key, value in config.items() if value is not None])


def alter_config(batch: Batch, event: AlterConfig) -> None:
    """Set or remove settings of the cluster, a topic or a broker.

    Shard 0 answers for the cluster and for brokers, and the shard that holds a topic for the topic. With
    ``validate_only`` nothing is set.
    """
    match event.entity:
        case "cluster":
            _alter_cluster(batch, event)
        case "topic":
            if event.name is None:
                batch.recorder.answer("INVALID_REQUEST", "name the topic")
            elif batch.state.cluster.holds(event.name):
                _alter_topic(batch, event.name, event)
        case "broker":
            _alter_broker(batch, event.name, event)


def _alter_cluster(batch: Batch, event: AlterConfig) -> None:
    config = text_of(event.config)
    complaint = (
        _first_complaint(config)
        or eligible_leaders.complaint_about(batch, config)
        or unclean_recovery.complaint_about(batch, config)
    )
    if complaint is not None:
        batch.recorder.answer("INVALID_CONFIG", complaint)
        return
    after = merged(batch.state.config, config)
    complaint = _complaint_about_sizes(batch, batch.state.config, after) or _complaint_about_fit(batch, config, after)
    if complaint is not None:
        batch.recorder.answer("INVALID_CONFIG", complaint)
        return
    again, is_changed = set_again(batch, batch.state.config, config), after != batch.state.config
    if is_changed and not event.validate_only:
        change_settings(batch, batch.state.settings, after)
    if (is_changed or again) and not event.validate_only:
        tell_cluster_settings(batch, again)
    batch.recorder.answer()


def change_settings(batch: Batch, settings: dict[str, str], config: dict[str, str]) -> None:
    """Change the claim's settings and the cluster's dynamic ones, and do what follows for the partitions.

    If unclean elections are allowed now, partitions without a leader get one at once (KIP-226). Under another
    min.insync.replicas, watermarks may move on, reassignments may end, and fewer replicas may be eligible.
    """
    before, had_eligible = batch.state.policy, batch.state.has_eligible_leaders
    commit_settings(batch, settings, config)
    is_min_isr_changed = batch.state.policy.min_insync_replicas != before.min_insync_replicas
    topics = list(batch.state.topics()) if is_min_isr_changed else []
    for topic in topics:
        _derive_watermarks_again(batch, topic)
    elect_all_leaderless(batch)
    for topic in topics:
        recheck_reassignments(batch, topic)
        eligible_leaders.judge_again(batch, topic, for_topic(before, topic.config).min_insync_replicas)
    if had_eligible and not batch.state.has_eligible_leaders:
        eligible_leaders.forget_all(batch)


def _alter_topic(batch: Batch, name: str, event: AlterConfig) -> None:
    config = text_of(event.config)
    topic = batch.state.topic(name)
    if topic is None or topic.is_deleting:
        batch.recorder.answer("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name}", topic=name)
        return
    complaint = complaint_about_topic_config(batch, config) or complaint_of_brokers(batch, config)
    if complaint is not None:
        batch.recorder.answer("INVALID_CONFIG", complaint, topic=name)
        return
    after = merged(topic.config, config)
    complaint = complaint_about_size(topic.config, after)
    if complaint is not None:
        batch.recorder.answer("INVALID_CONFIG", complaint, topic=name)
        return
    if after != topic.config and not event.validate_only:
        former_min_isr = topic.min_isr
        commit_topic_config(batch, topic, after)
        _derive_watermarks_again(batch, topic)
        elect_leaderless(batch, topic)
        recheck_reassignments(batch, topic)
        eligible_leaders.judge_again(batch, topic, former_min_isr)
    batch.recorder.answer(topic=name)


def _alter_broker(batch: Batch, name: str | None, event: AlterConfig) -> None:
    broker = None if name is None else broker_named(name)
    if broker is None:
        batch.recorder.answer("INVALID_REQUEST", "name the broker by its id")
        return
    name = str(broker)
    config = text_of(event.config)
    before = batch.state.broker_config.get(name, {})
    after = merged(before, config)
    complaint = (
        _complaint_about_names(config, NAMES)
        or _complaint_about_sizes(batch, before, after)
        or eligible_leaders.complaint_about_broker(batch, config)
    )
    if complaint is not None:
        batch.recorder.answer("INVALID_CONFIG", complaint)
        return
    again = set_again(batch, before, config)
    if (after != before or again) and not event.validate_only:
        commit_broker_config(batch, name, after, again)
    batch.recorder.answer()


def merged(before: Mapping[str, str], config: Mapping[str, str | None]) -> dict[str, str]:
    """Return settings with ``config`` laid over them, in order of key. None removes one."""
    laid = {**before, **config}
    return {key: value for key in sorted(laid) if (value := laid[key]) is not None}


def _derive_watermarks_again(batch: Batch, topic: WorkingTopic) -> None:
    for partition in topic.partitions:
        if partition.log_end_offsets:
            commit_watermark_due(batch, topic, partition)
