"""The state as last committed, for the commands that show it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from bus.clock import now_ms
from bus.image import read_clusters, read_image
from bus.interface import Bus
from bus.waiting import waiting_ms
from cli.errors import Refused, Unreachable
from cli.moment import seq_named
from cli.options import existing_bus
from conf.near_names import suggestion
from conf.settings import Settings
from state.cluster import Cluster
from state.partition import Topic
from state.policy import for_topic
from state.shadow import age_of
from state.view import view_of

OLD_AFTER_S = 10.0
# Why a state is old, if no other reason is known.
NO_ENGINE = "is the engine running?"
NO_READER = "is 'isrflow shadow run' running?"


class Committed(NamedTuple):
    """The cluster part of the state, and every topic by name."""

    cluster: Cluster
    topics: dict[str, Topic]
    # How long the oldest event that is not decided has waited. Only for a shadow.
    waiting_ms: int = 0

    def min_isr(self, topic: Topic) -> int:
        """Return how many in-sync replicas a write with acks=all to ``topic`` needs."""
        return for_topic(self.cluster.policy, topic.config).min_insync_replicas

    def topic(self, name: str) -> Topic:
        """Return a topic. Raises ``Refused`` if there is none."""
        if name not in self.topics:
            hint = suggestion(name, self.topics, "'isrflow topics list' lists all of them.")
            raise Refused(f"there is no topic {name!r}; {hint}")
        return self.topics[name]

    def view(self) -> dict[str, Any]:
        """Return the whole state as users see it (docs/contract.md#state)."""
        return view_of(self.cluster, self.topics.values())

    @property
    def age_s(self) -> float:
        """How long ago, by the bus's clock, the newest decided tick entered the bus; of a shadow, see ``age_s``."""
        return age_s(self.cluster, self.waiting_ms)


def age_s(cluster: Cluster, waiting_ms: int) -> float:
    """Return the age of a state. It is measured by the bus's clock, because the engine's clock may be ahead.

    The state of a shadow is old while an operation waits to be decided, and when its reader says nothing more.
    """
    if cluster.shadow is not None:
        return max(waiting_ms, age_of(cluster.shadow.heard_ms, cluster.clock_ms, now_ms())) / 1000
    return (now_ms() - cluster.clock_ms + (cluster.clock_skew_ms or 0)) / 1000


def without_state(name: str) -> Unreachable:
    """Make the error for a bus on which no engine has decided yet."""
    wait = "if its engine has just started, wait some seconds; otherwise start one with 'isrflow run'."
    return Unreachable(f"the bus {name} has no state yet: {wait}")


def read_committed(bus: Bus, name: str) -> Committed:
    """Read the state on ``bus``, which messages call ``name``. Raises ``Unreachable`` if there is none yet."""
    image = bus.image()
    if not image.pages:
        why = blocked(bus)
        raise Unreachable(f"the bus {name} has no state yet: {why}") if why else without_state(name)
    held = read_image(image)
    topics = {topic.topic: topic for topic in sorted(held.topics, key=lambda t: t.topic)}
    return Committed(held.cluster, topics, waiting_ms(bus) if held.cluster.shadow is not None else 0)


def committed(settings: Settings, at: str | None = None) -> Committed:
    """Read the state as last committed, and warn if it is old; or the state as of what ``at`` names.

    Raises ``Unreachable``, and ``WrongUse`` if ``at`` is no moment.
    """
    with existing_bus(settings) as bus:
        if at is not None:
            return _as_of(bus, settings, at)
        found = read_committed(bus, settings.bus_name)
        warn_if_old(found.cluster, bus)
    return found


def _as_of(bus: Bus, settings: Settings, at: str) -> Committed:
    if bus.decided_seq() == 0:
        raise without_state(settings.bus_name)
    # Only a state of the past needs the rules, and they take a while to import.
    from history.state_at import state_at

    state = state_at(bus, seq_named(bus, "--at", at))
    return Committed(state.states[0].cluster, {one.topic: one for one in sorted(state.topics(), key=lambda t: t.topic)})


def refuse_shadow(bus: Bus, name: str) -> None:
    """Raise ``Refused`` if ``bus``, which messages call ``name``, is the shadow of a cluster: nothing is led on it."""
    clusters = read_clusters(bus.image())
    shadow = clusters[0].shadow if clusters else None
    if shadow is not None:
        raise Refused(f"bus {name}: {shadow.refusal}. Nothing was published.")


def blocked(bus: Bus) -> str:
    """Return a sentence about the transaction that keeps events from being decided; empty if there is none."""
    blocker = bus.blocker()
    return f"events cannot be decided because of {blocker}" if blocker else ""


def why_silent(bus: Bus) -> str:
    """Return why nothing is decided, as far as the bus shows it: an open transaction, or no running engine."""
    return blocked(bus) or NO_ENGINE


def why_old(bus: Bus, cluster: Cluster, waiting_ms: int) -> str:
    """Return why a state is old, as far as the bus shows it. On a shadow the reader is silent if nothing waits."""
    is_unheard = cluster.shadow is not None and waiting_ms / 1000 < min(OLD_AFTER_S, age_s(cluster, waiting_ms))
    return NO_READER if is_unheard else why_silent(bus)


def warn_if_old(cluster: Cluster, bus: Bus) -> None:
    """Warn on standard error if a state is old, because a running engine ticks, and if a clock is skewed."""
    waits_ms = waiting_ms(bus)
    old_s, skew_ms = age_s(cluster, waits_ms), cluster.clock_skew_ms or 0
    if old_s > OLD_AFTER_S:
        click.echo(f"This state is {old_s:.0f} s old: {why_old(bus, cluster, waits_ms)}", err=True)
    if abs(skew_ms) / 1000 > OLD_AFTER_S:
        direction = "ahead of" if skew_ms > 0 else "behind"
        click.echo(f"The engine's clock is {abs(skew_ms) / 1000:.0f} s {direction} the bus's.", err=True)


def properties(config: Mapping[str, str]) -> str:
    """Format settings as Kafka's tools do."""
    return ",".join(f"{key}={value}" for key, value in sorted(config.items()))
