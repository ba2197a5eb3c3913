"""Brokers as a controller sees them: they register and send heartbeats, each on a connection of its own."""

import selectors
import threading
import time
from collections.abc import Iterable
from typing import Any

from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.kafka.properties import LOOPBACK
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from tests.support.controller_client import ControllerClient

JOIN_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 1_200.0
_RETRY_S = 0.1
# After the last two the broker asks again: the controller is busy, or does not lead yet.
_ANSWERED = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)
# An offset beyond every log, so that the broker counts as having read its registration.
_ALL_OF_THE_LOG = 1 << 40


class ProtocolBrokers(threading.Thread):
    """Brokers 1 to ``count``. Those in ``alive`` send a heartbeat every ``interval_s``; ``beat_s`` says when each did.

    While ``beat`` sends a heartbeat for a broker, that broker is not in ``alive``.
    """

    def __init__(self, port: int, cluster_id: str, count: int, interval_s: float) -> None:
        super().__init__(name="brokers", daemon=True)
        self._cluster_id = cluster_id
        self._interval_s = interval_s
        self._clients = {broker: ControllerClient(port) for broker in range(1, count + 1)}
        self.epochs: dict[int, int] = {}
        self.alive: set[int] = set()
        self.beat_s: dict[int, float] = {}
        self.error: Exception | None = None
        self._asked: set[int] = set()
        # Held while the connections are used.
        self._turn = threading.Lock()
        self._stopping = threading.Event()

    def join_cluster(self) -> None:
        """Register all brokers and unfence them. Raises ``TimeoutError`` when one is refused for too long."""
        deadline_s = time.monotonic() + JOIN_TIMEOUT_S
        for client in self._clients.values():
            client.wait_at_most(JOIN_TIMEOUT_S)
        for broker, client in self._clients.items():
            asked = self._registration(broker)
            # The controller may know which features it supports only once it leads.
            while (answer := client.ask("BrokerRegistration", **asked, Features=self._features()))["ErrorCode"]:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"broker {broker} is not registered: {answer}")
                time.sleep(_RETRY_S)
            self.epochs[broker] = answer["BrokerEpoch"]
        for broker in self._clients:
            while self.beat(broker)["IsFenced"]:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"broker {broker} stays fenced")
                time.sleep(_RETRY_S)
        self.alive = set(self._clients)

    def _features(self) -> list[dict[str, Any]]:
        """Return the features that the controller supports, as those of a broker."""
        told = self._clients[1].ask("ApiVersions", ClientSoftwareName="bench", ClientSoftwareVersion="1")
        return [
            {"Name": one["Name"], "MinSupportedVersion": one["MinVersion"], "MaxSupportedVersion": one["MaxVersion"]}
            for one in told["SupportedFeatures"]
        ]

    def _registration(self, broker: int) -> Values:
        listener = {"Name": "PLAINTEXT", "Host": LOOPBACK, "Port": 9_000 + broker, "SecurityProtocol": 0}
        return {
            "BrokerId": broker,
            "ClusterId": self._cluster_id,
            "IncarnationId": random_cluster_id(),
            "Listeners": [listener],
            "Rack": None,
            # Any uuid will do.
            "LogDirs": [random_cluster_id()],
        }

    def beat(self, broker: int, *, want_fence: bool = False, want_shut_down: bool = False) -> Values:
        """Send one heartbeat, and return its response."""
        deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            with self._turn:
                if broker in self._asked:
                    self._received(broker)
                self._send(broker, want_fence=want_fence, want_shut_down=want_shut_down)
                # The other brokers may use the connections while this one waits.
                self._asked.discard(broker)
            answer = self._answer(broker)
            if not answer["ErrorCode"]:
                return answer
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"broker {broker} gets no answer: {answer}")

    def _send(self, broker: int, *, want_fence: bool = False, want_shut_down: bool = False) -> None:
        self.beat_s[broker] = time.monotonic()
        self._asked.add(broker)
        self._clients[broker].send(
            "BrokerHeartbeat",
            BrokerId=broker,
            BrokerEpoch=self.epochs[broker],
            CurrentMetadataOffset=_ALL_OF_THE_LOG,
            WantFence=want_fence,
            WantShutDown=want_shut_down,
        )

    def _received(self, broker: int) -> None:
        self._asked.discard(broker)
        self._answer(broker)

    def _answer(self, broker: int) -> Values:
        answer = self._clients[broker].receive("BrokerHeartbeat")
        if answer["ErrorCode"] not in _ANSWERED:
            raise RuntimeError(f"a heartbeat of broker {broker} is refused: {answer}")
        return answer

    def run(self) -> None:
        try:
            self._beat_until_stopped()
        except Exception as error:
            self.error = error

    def _beat_until_stopped(self) -> None:
        """Send heartbeats. Like a real broker, a broker that waits for an answer sends no further heartbeat."""
        with selectors.DefaultSelector() as selector:
            for broker, client in self._clients.items():
                selector.register(client, selectors.EVENT_READ, broker)
            while not self._stopping.wait(self._interval_s):
                with self._turn:
                    for key, _ in selector.select(0):
                        if key.data in self._asked:
                            self._received(key.data)
                    for broker in sorted(self.alive - self._asked):
                        self._send(broker)

    def stop(self) -> None:
        self._stopping.set()
        if self.is_alive():
            self.join()
        for client in self._clients.values():
            client.close()

    def leave(self, brokers: Iterable[int]) -> None:
        """Stop the heartbeats of brokers."""
        with self._turn:
            self.alive.difference_update(brokers)
