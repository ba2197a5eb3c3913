"""Dynamic settings, levels of features and the active controller of an observed cluster."""

from collections import defaultdict
from collections.abc import Mapping

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit_cluster import (
    commit_announced_settings,
    commit_broker_config,
    commit_entity,
    commit_quorum_epoch,
    commit_settings,
    commit_static_settings,
)
from controller_logic.commit_topic import commit_topic_config
from controller_logic.config import merged
from state.entity import FEATURES, Entity, EntityType, entity_id_of
from state.events import Observed
from state.features import ELIGIBLE_VERSION
from state.policy import BROKER_NAMES
from state.reason import Reason

# Types of Kafka's resources that are entities here, each with the part of its name.
_ENTITIES: Mapping[str, tuple[EntityType, str]] = {
    "group": ("group", "group"),
    "client_metrics": ("client_metrics", "client-metrics"),
}


def adopt_settings(batch: Batch, event: Observed) -> None:
    """Adopt settings of the cluster, of brokers, of topics that are not new, and of groups."""
    found = dict(_by_entity(event))
    for row in event.results.features:
        if row.name == ELIGIBLE_VERSION:
            # Each shard must know it, and a setting is what all of them have.
            cluster = found.get(("cluster", ""), {})
            found["cluster", ""] = cluster | {row.name: str(row.level)}
    for (kind, name), config in found.items():
        match kind:
            case "cluster":
                _adopt_cluster(batch, config)
            case "broker":
                _adopt_broker(batch, name, config)
            case "topic":
                _adopt_topic(batch, name, config)
            case "controller":
                _adopt_static(batch, config)
            case "group" | "client_metrics":
                entity_type, part = _ENTITIES[kind]
                _adopt_entity(batch, entity_type, {part: name}, config)


def topic_settings_of(event: Observed, topic: str) -> dict[str, str]:
    """Return the settings of a new topic."""
    return merged({}, _by_entity(event).get(("topic", topic), {}))


def adopt_features(batch: Batch, event: Observed) -> None:
    """Adopt the levels of features."""
    levels = {row.name: str(row.level) for row in event.results.features}
    if levels:
        _adopt_entity(batch, FEATURES, {}, levels)


def adopt_quorum(batch: Batch, event: Observed) -> None:
    """Adopt which controller is active."""
    found = event.results.controller
    held = batch.state.quorum
    if found is not None and (found.controller, found.epoch) != (held.voter, held.quorum_epoch):
        quorum = replace(held, voter=found.controller, quorum_epoch=found.epoch, began_ms=batch.state.now_ms)
        commit_quorum_epoch(batch, quorum, Reason.CONTROLLER_CHANGED)


def _by_entity(event: Observed) -> Mapping[tuple[str, str], dict[str, str | None]]:
    found: defaultdict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
    for row in event.results.settings:
        found[row.entity_type, row.entity][row.key] = row.value
    return found


def _adopt_cluster(batch: Batch, config: Mapping[str, str | None]) -> None:
    after = merged(batch.state.config, config)
    if after != batch.state.config:
        commit_settings(batch, batch.state.settings, after)
        commit_announced_settings(batch, {}, ())


def _adopt_broker(batch: Batch, name: str, config: Mapping[str, str | None]) -> None:
    before = batch.state.broker_config.get(name, {})
    after = merged(before, config)
    if after != before:
        commit_broker_config(batch, name, after, ())


def _adopt_static(batch: Batch, config: Mapping[str, str | None]) -> None:
    """Adopt what the rules for partitions read of the active controller's file."""
    shadow = batch.state.shadow
    told = {key: value for key, value in config.items() if key in BROKER_NAMES and value is not None}
    if shadow is not None and told != shadow.static_settings:
        commit_static_settings(batch, replace(shadow, static_settings=told))


def _adopt_topic(batch: Batch, name: str, config: Mapping[str, str | None]) -> None:
    topic = batch.state.topic(name) if batch.state.cluster.holds(name) else None
    if topic is not None and (after := merged(topic.config, config)) != topic.config:
        commit_topic_config(batch, topic, after)


def _adopt_entity(
    batch: Batch, entity_type: EntityType, names: dict[str, str | None], values: Mapping[str, str | None]
) -> None:
    """Adopt values of a metadata entity. Only shard 0 keeps entities."""
    if not batch.state.cluster.writes_cluster_decisions:
        return
    held = batch.state.entities.get(entity_id_of(entity_type, names))
    before = held.values if held else {}
    after = merged(before, values)
    if after != before:
        commit_entity(batch, Entity(entity_type=entity_type, names=names, values=after))
