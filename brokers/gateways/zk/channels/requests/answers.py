"""What a broker's answer to a request means: which replicas obeyed, and whether the broker obeys this controller.

The code at the top of an answer is 0 even if every partition failed, so each partition's code is read.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from brokers.gateways.zk.channels.requests.building import Outgoing, Told
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.messages import LEADER_AND_ISR, STOP_REPLICA
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from state.decisions import BrokerDecision
from state.topic_events import ReplicaReports, ReportRow, TopicReports

# Small enough that other events get in between those of one answer.
REPORTS_PER_EVENT = 2_000
# The answer about a partition whose leader epoch, or a newer one, the broker has. It may have been told twice.
_HEARD_BEFORE = (ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)


class StaleControllerError(Exception):
    """A broker obeys a controller with a later epoch, so this gateway must stop."""


class StaleBrokerError(Exception):
    """The broker has started again, and has another epoch."""


def check_obeyed(values: Values) -> None:
    """Raise ``StaleControllerError`` or ``StaleBrokerError`` if a broker refused the whole request for that reason."""
    code = values["ErrorCode"]
    if code == ErrorCode.STALE_CONTROLLER_EPOCH:
        raise StaleControllerError("a broker has heard of a later controller epoch")
    if code == ErrorCode.STALE_BROKER_EPOCH:
        raise StaleBrokerError("the broker has another epoch")


class Report(NamedTuple):
    """What became of a broker's replica of one partition."""

    place: Place
    topic_id: str
    row: ReportRow


def reports_of(request: Outgoing, values: Values) -> Iterator[Report]:
    """Yield what an answer says about each partition of a LeaderAndIsr or StopReplica request."""
    codes, top = _codes(request, values), int(values["ErrorCode"])
    for place, told in request.told.items():
        code: int = codes.get(place, top)
        if code not in _HEARD_BEFORE:
            if code == ErrorCode.NONE:
                row = ReportRow(place.partition, told.leader_epoch, _done(request.api_key, told))
            else:
                row = ReportRow(place.partition, told.leader_epoch, "error", name_of(code))
            yield Report(place, told.topic_id, row)


def events_of(reports: Iterable[Report], broker: BrokerDecision, time_ms: int) -> Iterator[ReplicaReports]:
    """Yield events with a broker's reports, up to ``REPORTS_PER_EVENT`` in each."""
    left = iter(reports)
    while some := list(islice(left, REPORTS_PER_EVENT)):
        rows: dict[tuple[str, str], list[ReportRow]] = {}
        for one in some:
            rows.setdefault((one.place.topic, one.topic_id), []).append(one.row)
        topics = tuple(TopicReports(name, tuple(about), topic_id) for (name, topic_id), about in rows.items())
        yield ReplicaReports(time_ms=time_ms, broker=broker.broker, broker_epoch=broker.broker_epoch, topics=topics)


def _done(api_key: int, told: Told) -> Literal["leader", "follower", "stopped", "deleted"]:
    if api_key == STOP_REPLICA:
        return "deleted" if told.delete else "stopped"
    return "leader" if told.leads else "follower"


def _codes(request: Outgoing, values: Values) -> dict[Place, int]:
    if request.api_key == LEADER_AND_ISR and values["Topics"]:
        names = {told.topic_id: place.topic for place, told in request.told.items()}
        return {
            Place(names[topic["TopicId"]], one["PartitionIndex"]): one["ErrorCode"]
            for topic in values["Topics"]
            if topic["TopicId"] in names
            for one in topic["PartitionErrors"]
        }
    errors = values.get("PartitionErrors", ())
    return {Place(one["TopicName"], one["PartitionIndex"]): one["ErrorCode"] for one in errors}


def name_of(code: int) -> str:
    """Return an error's name in Kafka, or its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"ERROR_{code}"
