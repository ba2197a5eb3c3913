"""What a broker's answer to a request means: which replicas did what they were told, and whether we are obeyed.

The code at the top of an answer is 0 even if every partition failed, so each partition's code is read.
"""

from collections.abc import Iterator
from typing import Literal

from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.messages import LEADER_AND_ISR, STOP_REPLICA
from brokers.gateways.zk.requests.building import Outgoing, Told
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from state.decisions import BrokerDecision
from state.events import ReplicaReport

# A broker answers so for a partition whose leader epoch it has, or a newer one. It may have been told twice.
_HEARD_BEFORE = (ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)


class StaleControllerError(Exception):
    """A broker obeys a controller with a later epoch, so this gateway must stop."""


class StaleBrokerError(Exception):
    """The broker started again since, and has another epoch."""


def check_obeyed(values: Values) -> None:
    """Raise ``StaleControllerError`` or ``StaleBrokerError`` if a broker refused the whole request for that reason."""
    code = values["ErrorCode"]
    if code == ErrorCode.STALE_CONTROLLER_EPOCH:
        raise StaleControllerError("a broker has heard of a later controller epoch")
    if code == ErrorCode.STALE_BROKER_EPOCH:
        raise StaleBrokerError("the broker has another epoch")


def reports_of(request: Outgoing, values: Values, broker: BrokerDecision, time_ms: int) -> Iterator[ReplicaReport]:
    """Yield what an answer says about each partition of a LeaderAndIsr or StopReplica request."""
    codes, top = _codes(request, values), int(values["ErrorCode"])
    for place, told in request.told.items():
        code: int = codes.get(place, top)
        if code in _HEARD_BEFORE:
            continue
        yield ReplicaReport(
            time_ms=time_ms,
            topic=place.topic,
            topic_id=told.topic_id,
            partition=place.partition,
            broker=broker.broker,
            broker_epoch=broker.broker_epoch,
            leader_epoch=told.leader_epoch,
            outcome=_done(request.api_key, told) if code == ErrorCode.NONE else "error",
            error=None if code == ErrorCode.NONE else name_of(code),
        )


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
