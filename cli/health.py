"""Show whether the cluster is healthy."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from bus.clock import now_ms
from bus.interface import BusError
from cli.brokers.away import Away, away_of
from cli.committed import Committed, committed, read_committed, why_old
from cli.duration import second
from cli.errors import Unreachable
from cli.moment import at_option
from cli.options import existing_bus, with_settings
from cli.output import format_option, show_fields, show_json, some
from conf.counted import counted
from conf.settings import Settings
from sinks.web.partitions import UNDER_REPLICATED, problems_of
from sinks.web.state_times import StateTimes
from state.broker import BrokerState
from state.partition import Topic
from state.risk import OFFLINE, RISKS, UNDER_MIN_ISR, stand_of
from state.stored.codec import CodecError

HEALTHY, UNHEALTHY, UNKNOWN = "healthy", "unhealthy", "unknown"
EXIT_CODES = {HEALTHY: 0, UNHEALTHY: 1, UNKNOWN: 2}
WATCH_INTERVAL_S = 0.5
# Worst first.
AT_RISK = (*RISKS, UNDER_REPLICATED)
# The others do not make a cluster unhealthy: a partition may have been created without a spare replica.
UNHEALTHY_IF = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED)


class Health(NamedTuple):
    """Whether a cluster is healthy, and why not."""

    status: str
    reasons: list[str]
    # How old the last commit is; None if it is not known.
    age_s: float | None = None
    details: dict[str, Any] = {}
    # Since when the brokers that do not serve are away.
    away: tuple[Away, ...] = ()

    @property
    def age(self) -> str:
        """The age of the last commit in words."""
        return "unknown" if self.age_s is None else f"{self.age_s:.1f} s ago"

    @property
    def document(self) -> dict[str, Any]:
        """The health as JSON shows it."""
        age_ms = None if self.age_s is None else round(self.age_s * 1000)
        found = {"status": self.status, "reasons": self.reasons, "last_commit_age_ms": age_ms, **self.details}
        return found | ({"away": [one.document for one in self.away]} if self.details else {})


@click.command("health")
@click.option("--watch", is_flag=True, help="Keep running, and print whenever something changes.")
@click.option("--exit-when-healthy", is_flag=True, help="Watch, and exit with 0 once the cluster is healthy.")
@click.option("--timeout-ms", type=click.IntRange(min=1), metavar="N", help="Watch for no longer than this.")
@click.option(
    "--max-age-ms",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="The health is unknown if the last commit is older.",
)
@click.option(
    "--min-spare",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Unhealthy, too, while a partition has fewer in-sync replicas than min.insync.replicas + N.",
)
@at_option
@format_option
@with_settings
def command(
    settings: Settings,
    at: str | None,
    watch: bool,
    exit_when_healthy: bool,
    timeout_ms: int | None,
    max_age_ms: int,
    min_spare: int,
    form: str,
) -> None:
    """Show whether the cluster is healthy, by exit code too: 0 healthy, 1 unhealthy, 2 unknown.

    It is healthy if every broker serves, every partition has a leader, and every replica is in sync. It is unknown if
    the bus cannot be read, or if no engine has committed anything lately. Of a shadow it is the health of the observed
    cluster, and unknown while an operation waits to be decided, or if 'isrflow shadow run' has stopped. Wrong use ends
    with 2, too, but then nothing is on standard output.

    \b
    Examples:
      isrflow health
      isrflow health --exit-when-healthy --timeout-ms 60000
      isrflow health --format json
    """
    if at is not None:
        if watch or exit_when_healthy:
            raise click.UsageError("--at shows the past, which does not change, so it excludes --watch")
        past = _past(settings, at, min_spare)
        _show(past, form)
        click.get_current_context().exit(EXIT_CODES[past.status])
    ends_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
    before: Health | None = None
    state_times = StateTimes()
    is_watched = watch or exit_when_healthy
    while True:
        found = health_of(settings, max_age_ms, state_times, min_spare)
        if before is None or _lasting(found) != _lasting(before):
            if is_watched and form != "json":
                # An empty line parts it from what was printed before.
                click.echo(("" if before is None else "\n") + second(now_ms()))
            _show(found, form)
        before = found
        is_over = found.status == HEALTHY if exit_when_healthy else not watch
        if is_over or (ends_s is not None and time.monotonic() >= ends_s):
            click.get_current_context().exit(EXIT_CODES[found.status])
        time.sleep(WATCH_INTERVAL_S)


def _lasting(found: Health) -> Health:
    """Return the health without what always changes: how long ago something was, and until when it was observed."""
    details = {name: value for name, value in found.details.items() if name != "observed"}
    return found._replace(age_s=None, away=(), details=details)


def health_of(settings: Settings, max_age_ms: int, state_times: StateTimes, min_spare: int = 0) -> Health:
    """Read the state on the bus, and judge it."""
    try:
        with existing_bus(settings) as bus:
            found = read_committed(bus, settings.bus_name)
            why = lambda: why_old(bus, found.cluster, found.waiting_ms)
            health = aged(judged(found, min_spare), found.age_s, max_age_ms, why)
            return health._replace(away=away_of(bus, found, state_times))
    except Unreachable as error:
        return Health(UNKNOWN, [error.message])
    except (BusError, CodecError, OSError) as error:
        return Health(UNKNOWN, [Unreachable(str(error)).message])


def _past(settings: Settings, at: str, min_spare: int) -> Health:
    """Judge the state as of what ``at`` names. Raises ``WrongUse`` if that is no moment."""
    try:
        found = committed(settings, at)
    except Unreachable as error:
        return Health(UNKNOWN, [error.message])
    health = judged(found, min_spare)
    when = {"seq": found.cluster.seq, "time_ms": found.cluster.clock_ms}
    return health._replace(details=when | health.details)


def judged(found: Committed, min_spare: int = 0) -> Health:
    """Judge a state, whatever its age. Every partition should have ``min_spare`` in-sync replicas to lose."""
    brokers = found.cluster.brokers.values()
    away = [broker.broker for broker in brokers if broker.state is not BrokerState.active]
    topics = [topic for topic in found.topics.values() if topic.shown_state.name == "created"]
    at_risk = _at_risk(found, topics)
    reasons = [f"broker {broker} is {found.cluster.brokers[broker].state.name}" for broker in sorted(away)]
    reasons += [
        counted(len(names), f"partition is {name.replace('_', ' ')}", f"partitions are {name.replace('_', ' ')}")
        for name in UNHEALTHY_IF
        if (names := at_risk[name])
    ]
    short = _without_spare(found, topics, min_spare) if min_spare else []
    if short:
        have = counted(len(short), "partition has", "partitions have")
        reasons.append(f"{have} fewer in-sync replicas than min.insync.replicas + {min_spare}: {some(short)}")
    if not brokers:
        reasons.append("no broker is registered")
    details = {
        "controller_id": found.cluster.controller_id,
        "controller_epoch": found.cluster.controller_epoch,
        "brokers": len(brokers),
        "not_active": sorted(away),
        "partitions": sum(len(topic.partitions) for topic in topics),
        **at_risk,
    } | ({"min_spare": min_spare, "without_spare": short} if min_spare else {})
    if (shadow := found.cluster.shadow) is not None:
        clock_ms = found.cluster.clock_ms
        until = {"cluster_id": shadow.cluster_id, "offset": shadow.last_offset, "time_ms": clock_ms}
        lag_ms = shadow.lag_ms(clock_ms)
        details["observed"] = until if lag_ms is None else until | {"lag_ms": lag_ms}
    return Health(UNHEALTHY if reasons else HEALTHY, reasons, details=details)


def aged(found: Health, age_s: float, max_age_ms: int, why: Callable[[], str]) -> Health:
    """Return the present health as far as a state of the age ``age_s`` shows it.

    A state that is too old shows nothing. ``why`` tells why there is no newer one.
    """
    if age_s * 1000 <= max_age_ms:
        return found._replace(age_s=age_s)
    what = "what was observed is older" if "observed" in found.details else "the last commit is older"
    reason = f"{what} than {max_age_ms} ms: {why()}"
    return found._replace(status=UNKNOWN, reasons=[reason, *found.reasons], age_s=age_s)


def _at_risk(found: Committed, topics: list[Topic]) -> dict[str, list[str]]:
    """Name the partitions with each problem, those that lack most replicas first, because only some are shown."""
    rows: list[tuple[int, str, int, tuple[str, ...]]] = []
    for topic in topics:
        min_isr = found.min_isr(topic)
        for one in topic.partitions:
            if problems := problems_of(one, stand_of(one, min_isr), is_deleting=False):
                rows.append((len(one.isr) - len(one.replicas), topic.topic, one.partition, problems))
    rows.sort()
    return {name: [f"{topic}-{number}" for _, topic, number, problems in rows if name in problems] for name in AT_RISK}


def _without_spare(found: Committed, topics: list[Topic], min_spare: int) -> list[str]:
    """Name the partitions with fewer than ``min_spare`` in-sync replicas to lose, those with the fewest first."""
    rows: list[tuple[int, str, int]] = []
    for topic in topics:
        min_isr = found.min_isr(topic)
        for one in topic.partitions:
            if (spare := stand_of(one, min_isr).spare) < min_spare:
                rows.append((spare, topic.topic, one.partition))
    return [f"{topic}-{number}" for _, topic, number in sorted(rows)]


def _show(found: Health, form: str) -> None:
    if form == "json":
        show_json(found.document)
        return
    details = found.details
    fields: list[tuple[str, object]] = [("Health", found.status)]
    if "seq" in details:
        fields += [("AsOf", f"seq {details['seq']}, {second(details['time_ms'])}")]
    elif "observed" not in details:
        fields += [("LastCommit", found.age)]
    told = {f"broker {one.broker} is {one.state}": one.text for one in found.away}
    fields += [("Reason", reason + told.get(reason, "")) for reason in found.reasons]
    if details:
        if observed := details.get("observed"):
            until = f"offset {observed['offset']} of its log, {second(observed['time_ms'])}"
            fields += [("ObservedCluster", observed["cluster_id"]), ("ObservedUntil", until)]
            fields += [("Lag", f"{observed['lag_ms']} ms")] if "lag_ms" in observed else []
        # The engine that claimed last: of a standby pair, the one that decides.
        fields += [("Controller", details["controller_id"] or "unknown")]
        fields += [("ControllerEpoch", details["controller_epoch"]), ("Brokers", details["brokers"])]
        fields += [("Partitions", details["partitions"])]
        fields += [(_heading(name), some(details[name])) for name in AT_RISK if details[name]]
    show_fields(fields)


def _heading(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
