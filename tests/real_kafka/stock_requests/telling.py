"""Write requests as lines.

What every request must say is left out where it says it: who sends it, in which epoch, and the ids of topics.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from brokers.gateways.zk.messages import IBP_3_9, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from brokers.wire.schema import Values
from tests.real_kafka.stock_requests.simulated import LISTENER, Heard

_NAMES = {LEADER_AND_ISR: "LeaderAndIsr", STOP_REPLICA: "StopReplica", UPDATE_METADATA: "UpdateMetadata"}
# The fields of a partition, with the word for each, and the value that is not shown.
_FIELDS = {
    "Leader": ("leader", None),
    "LeaderEpoch": ("epoch", None),
    "Isr": ("isr", None),
    "PartitionEpoch": ("partition-epoch", None),
    "ZkVersion": ("partition-epoch", None),
    "Replicas": ("replicas", None),
    "AddingReplicas": ("adding", []),
    "RemovingReplicas": ("removing", []),
    "OfflineReplicas": ("offline", []),
    "IsNew": ("new", False),
    "LeaderRecoveryState": ("recovery", 0),
    "DeletePartition": ("delete", None),
}


class Known(NamedTuple):
    """What requests must say: the controller, its epoch, the port of each broker, and the id of each topic."""

    controller: int
    controller_epoch: int
    ports: Mapping[int, int]
    topic_ids: Mapping[str, str]


def line(heard: Heard, known: Known) -> str:
    """Write one request."""
    request = heard.request
    values = dict(request.values)
    parts = [_NAMES.get(request.api_key, request.name)]
    expected = {
        "ControllerId": known.controller,
        "ControllerEpoch": known.controller_epoch,
        "BrokerEpoch": heard.broker_epoch,
        "version": IBP_3_9.of(request.api_key),
    }
    values["version"] = request.version
    parts += _others(values, expected)
    parts += _brokers(values.pop("LiveBrokers", None), values.pop("LiveLeaders", None), known)
    states = list(_states(values.pop("TopicStates"), known))
    parts += [f"{name}={value}" for name, value in sorted(values.items()) if value]
    return " ".join(parts) + "".join(f"\n  {state}" for state in sorted(states))


def _others(values: Values, expected: Mapping[str, Any]) -> Iterator[str]:
    for name, value in expected.items():
        found = values.pop(name)
        if found != value:
            yield f"{name}={found}"


def _brokers(live: Any, leaders: Any, known: Known) -> Iterator[str]:
    if live is not None:
        yield "live=" + _listed(sorted(one["Id"] for one in live))
        for one in live:
            wanted = {"Port": known.ports[one["Id"]], "Host": "127.0.0.1", "Listener": LISTENER, "SecurityProtocol": 0}
            if one["Endpoints"] != [wanted] or one["Rack"] is not None:
                yield f"broker={one}"
    if leaders is not None:
        yield "leaders=" + _listed(sorted(one["BrokerId"] for one in leaders))
        for one in leaders:
            if (one["HostName"], one["Port"]) != ("127.0.0.1", known.ports[one["BrokerId"]]):
                yield f"leader={one}"


def _states(topics: Iterable[Values], known: Known) -> Iterator[str]:
    for topic in topics:
        name, topic_id = topic["TopicName"], topic.get("TopicId")
        stranger = [] if topic_id in (None, known.topic_ids.get(name)) else [f"id={topic_id}"]
        for one in topic["PartitionStates"]:
            yield " ".join([f"{name}-{one['PartitionIndex']}", *stranger, *_fields(one, known)])


def _fields(one: Values, known: Known) -> Iterator[str]:
    for name, value in one.items():
        if name in ("PartitionIndex", "TopicName"):
            continue
        if name == "ControllerEpoch":
            if value != known.controller_epoch:
                yield f"controller-epoch={value}"
            continue
        word, usual = _FIELDS[name]
        if value != usual:
            yield f"{word}={_listed(value) if isinstance(value, list) else str(value).lower()}"


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers)) or "none"


def told(lines: Mapping[int, list[str]]) -> str:
    """Write what the brokers were told; those that were told the same stand together."""
    groups: dict[str, list[int]] = {}
    for broker, requests in sorted(lines.items()):
        if requests:
            groups.setdefault("\n".join(requests), []).append(broker)
    return "\n".join(f"to {_listed(brokers)}:\n{text}" for text, brokers in groups.items()) or "no request"
