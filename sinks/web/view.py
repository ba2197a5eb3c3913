"""The sections of JSON that the page gets. Each has a limited size, however large the cluster is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bus.clock import now_ms, steady_ms
from sinks.metric_snapshot import MetricSnapshot
from sinks.web.health import COMMIT_AGE_MS_MAX, readiness, role_of
from sinks.web.partitions import PROBLEMS
from sinks.web.picture import Picture
from sinks.web.recent import Group
from sinks.web.state_times import StateTimes
from state.broker import Broker, BrokerState
from state.ids import NO_TIME
from state.risk import NO_LOSS, racks_of, worst_first

BROKERS_MAX = 200
ROWS_MAX = 100
GROUPS_MAX = 50
RACKS_MAX = 20

Section = dict[str, Any]
_NOTHING_KNOWN = StateTimes()


def status_of(snapshot: MetricSnapshot) -> Section:
    """Return the section about the engine itself."""
    health = readiness(snapshot, steady_ms())
    return {
        "version": snapshot.version,
        "controller_id": snapshot.controller_id,
        "controller_epoch": snapshot.controller_epoch,
        "role": role_of(snapshot),
        "phase": snapshot.phase,
        "ready": health.ok,
        "why": health.why,
        "decided_seq": snapshot.decided_seq,
        "lag_events": snapshot.lag_events,
        "unclean": snapshot.unclean,
    }


def beat_of(snapshot: MetricSnapshot, picture: Picture, every_ms: int) -> Section:
    """Return what each push begins with: the engine's time, when the next one comes at the latest, the state's age.

    An engine that does not decide has no clock but its machine's. Until when a cluster is observed always changes.
    """
    committed_ms = snapshot.last_commit_steady_ms
    return {
        "now_ms": now_ms() if committed_ms is None else snapshot.last_engine_ms + steady_ms() - committed_ms,
        "every_ms": every_ms,
        "age_ms": picture.age_ms(),
        "old_after_ms": COMMIT_AGE_MS_MAX,
        "is_unheard": picture.is_unheard(COMMIT_AGE_MS_MAX),
        "observed": picture.observed,
    }


def cluster_of(picture: Picture, state_times: StateTimes = _NOTHING_KNOWN) -> Section:
    """Return the section about the cluster: its size, its brokers, and the worst of its partitions at risk."""
    summary = picture.summary
    worst = summary.rows[:ROWS_MAX]
    # If not all brokers fit, inactive ones come first.
    brokers = sorted(picture.brokers.values(), key=lambda broker: (broker.is_active, broker.broker))[:BROKERS_MAX]
    return {
        "observed": picture.observed,
        "topics": picture.topics,
        "partitions": picture.partitions,
        "brokers": [
            _broker(broker, picture, state_times) for broker in sorted(brokers, key=lambda broker: broker.broker)
        ],
        "brokers_left_out": len(picture.brokers) - len(brokers),
        "problems": {problem: summary.problems.get(problem, 0) for problem in PROBLEMS},
        "racks": _racks(picture),
        "at_risk": summary.at_risk,
        "rows": worst,
        "gone": gone(picture, (replica for row in worst for replica in row.replicas)),
    }


def _racks(picture: Picture) -> list[Section]:
    """Return what the loss of each rack would cost, the worst first."""
    lost = {rack: picture.summary.lost_racks.get(rack, NO_LOSS) for rack in racks_of(picture.brokers).values()}
    return [{"rack": rack} | loss._asdict() for rack, loss in worst_first(lost)[:RACKS_MAX]]


def gone(picture: Picture, replicas: Iterable[int]) -> dict[int, str]:
    """Return what became of each dead broker among those with these replicas.

    The last in-sync replica stays in the ISR when its broker dies.
    """
    found = {}
    for number in set(replicas):
        broker = picture.brokers.get(number)
        if broker is None or broker.state is BrokerState.fenced:
            found[number] = "unregistered" if broker is None else broker.state.name
    return found


def _broker(broker: Broker, picture: Picture, state_times: StateTimes) -> Section:
    number, summary = broker.broker, picture.summary
    replicas = summary.replicas.get(number, 0)
    return {
        "broker": number,
        "state": broker.state.name,
        "rack": broker.rack,
        "leaders": summary.leaders.get(number, 0),
        "preferred": summary.preferred.get(number, 0),
        "replicas": replicas,
        "out_of_sync": replicas - summary.in_sync.get(number, 0),
        "lost": summary.lost.get(number, NO_LOSS)._asdict(),
        **({} if broker.is_active else _away(broker, state_times)),
    }


def _away(broker: Broker, state_times: StateTimes) -> Section:
    """Return since when a broker does not serve and why; if that is not known, when it was last heard."""
    since = state_times.of(broker)
    if since is not None:
        return {"since_ms": since.time_ms, "reason": since.reason}
    return {} if broker.last_contact_ms == NO_TIME else {"heard_ms": broker.last_contact_ms}


def decisions_of(groups: Sequence[Group], dropped: int, totals: Mapping[str, int]) -> Section:
    """Return the section about the newest decisions. ``totals`` counts all that were taken in, by lane."""
    return {"groups": groups, "dropped": dropped, "totals": dict(totals)}


encode = msgspec.json.Encoder().encode
