"""What the requests to a broker must obey in any story, whatever was decided.

A broker makes no fetcher for a leader that it does not know to live, and refuses epochs that it has heard of. So a
controller must name the live brokers before it names leaders, and tell each epoch once. A replica that was in sync is
not new.
"""

from collections.abc import Iterator, Sequence

from brokers.gateways.zk.messages import LEADER_AND_ISR, UPDATE_METADATA
from brokers.wire.schema import Values
from tests.real_kafka.stock_requests.simulated import Heard

NO_LEADER, DELETED = -1, -2
# A topic's name, or its id, and a partition's number.
Place = tuple[str, int]
# Leader, leader epoch, ISR in rising order, replicas.
Known = tuple[int, int, tuple[int, ...], tuple[int, ...]]


class Run:
    """What one run of a broker was told, request by request; ``wrong`` lists what it must not be told."""

    def __init__(self, broker: int, controller: int) -> None:
        self.wrong: list[str] = []
        # Its metadata now.
        self.metadata: dict[Place, Known] = {}
        self._broker = broker
        self._controller = controller
        self._controller_epoch = 0
        self._live: set[int] = set()
        # The newest leader epoch that it was told about its replicas, by topic id and number.
        self._epochs: dict[Place, int] = {}

    def hear(self, heard: Heard) -> None:
        """Take in one request."""
        values = heard.request.values
        if (values["ControllerId"], values["BrokerEpoch"]) != (self._controller, heard.broker_epoch):
            self.wrong.append(f"of controller {values['ControllerId']} to broker epoch {values['BrokerEpoch']}")
        if values["ControllerEpoch"] < self._controller_epoch:
            self.wrong.append(f"controller epoch {values['ControllerEpoch']} after {self._controller_epoch}")
        self._controller_epoch = values["ControllerEpoch"]
        if heard.request.api_key == UPDATE_METADATA:
            self._hear_metadata(values)
        elif heard.request.api_key == LEADER_AND_ISR:
            self._hear_leaders(values)

    def _hear_metadata(self, values: Values) -> None:
        self._live = {one["Id"] for one in values["LiveBrokers"]}
        if self._controller not in self._live:
            self.wrong.append(f"brokers {sorted(self._live)} live, and not the controller")
        for topic, one in _states(values):
            place = (topic["TopicName"], one["PartitionIndex"])
            if one["Leader"] == DELETED:
                self.metadata.pop(place, None)
            else:
                self.metadata[place] = _known(one)

    def _hear_leaders(self, values: Values) -> None:
        leaders = {one["BrokerId"] for one in values["LiveLeaders"]}
        for topic, one in _states(values):
            place, epoch, leader = (topic["TopicId"], one["PartitionIndex"]), one["LeaderEpoch"], one["Leader"]
            named = f"{topic['TopicName']}-{one['PartitionIndex']}"
            former = self._epochs.get(place)
            if former is not None and epoch <= former:
                self.wrong.append(f"{named}: leader epoch {epoch} after {former}")
            if former is not None and one["IsNew"] and self._broker in one["Isr"]:
                self.wrong.append(f"{named}: new, and in sync")
            if leader != NO_LEADER and leader not in self._live & leaders:
                self.wrong.append(f"{named}: leader {leader}, and {sorted(self._live & leaders)} live")
            self._epochs[place] = epoch


def _states(values: Values) -> Iterator[tuple[Values, Values]]:
    for topic in values["TopicStates"]:
        for one in topic["PartitionStates"]:
            yield topic, one


def _known(one: Values) -> Known:
    return one["Leader"], one["LeaderEpoch"], tuple(sorted(one["Isr"])), tuple(one["Replicas"])


def runs_of(broker: int, requests: Sequence[Heard], controller: int) -> list[Run]:
    """Divide what a broker heard into its runs, oldest first, each of which has a broker epoch of its own."""
    runs: dict[int, Run] = {}
    for heard in requests:
        runs.setdefault(heard.broker_epoch, Run(broker, controller)).hear(heard)
    return list(runs.values())
