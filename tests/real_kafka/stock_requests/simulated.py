"""A simulated broker in ZooKeeper mode: a znode, and a socket that notes what the controller says and obeys."""

import json
import socketserver
import threading
from typing import Any, NamedTuple

from kazoo.client import KazooClient

from brokers.gateways.zk import znodes
from brokers.gateways.zk.messages import CATALOGUE, LEADER_AND_ISR, STOP_REPLICA
from brokers.wire.catalogue import API_VERSIONS_KEY, Request, framed
from brokers.wire.messages import FRAME_LENGTH_BYTES
from brokers.wire.schema import Values
from tests.support.controller_client import LOOPBACK

LISTENER = "PLAINTEXT"


class Heard(NamedTuple):
    """A request, and the epoch that the broker had when it came."""

    request: Request
    broker_epoch: int


class SimulatedBroker:
    """One broker; ``heard`` grows with each request that came."""

    def __init__(self, number: int, client: KazooClient) -> None:
        self.heard: list[Heard] = []
        # The transaction that made its znode; the newest one after it is gone.
        self.epoch = 0
        self._number = number
        self._client = client
        self._server: _Server | None = None
        self._port = 0

    @property
    def port(self) -> int:
        return self._port

    @property
    def lives(self) -> bool:
        return self._server is not None

    def start(self) -> None:
        """Listen, and appear in ZooKeeper."""
        server = self._server = _Server(self)
        threading.Thread(target=server.serve_forever, name=f"broker-{self._number}", daemon=True).start()
        self._port = server.server_address[1]
        text = {
            "version": 5,
            "host": LOOPBACK,
            "port": self._port,
            "jmx_port": -1,
            "timestamp": "1",
            "endpoints": [f"{LISTENER}://{LOOPBACK}:{self._port}"],
            "listener_security_protocol_map": {LISTENER: LISTENER},
            "features": {},
        }
        path = f"{znodes.BROKERS}/{self._number}"
        self._client.create(path, json.dumps(text).encode())
        self.epoch = self._client.get(path)[1].czxid

    def stop(self) -> None:
        """Close all connections, and disappear from ZooKeeper."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self._client.delete(f"{znodes.BROKERS}/{self._number}")

    def answer(self, frame: bytes) -> bytes:
        request = CATALOGUE.decode_request(frame)
        # A gateway asks for versions to see whether the broker answers. No stock controller does.
        is_question = request.api_key == API_VERSIONS_KEY
        if not is_question:
            self.heard.append(Heard(request, self.epoch))
        values = {} if is_question else _obeyed(request)
        return framed(CATALOGUE.encode_response(request.api_key, request.version, request.correlation_id, values))


def _obeyed(request: Request) -> Values:
    """Answer that everything was done."""
    topics = request.values["TopicStates"]
    if request.api_key == LEADER_AND_ISR:
        errors = [{"PartitionIndex": one["PartitionIndex"]} for topic in topics for one in topic["PartitionStates"]]
        return {"Topics": [{"TopicId": topic["TopicId"], "PartitionErrors": errors} for topic in topics]}
    if request.api_key == STOP_REPLICA:
        stopped = [(topic["TopicName"], one) for topic in topics for one in topic["PartitionStates"]]
        named = [{"TopicName": name, "PartitionIndex": one["PartitionIndex"]} for name, one in stopped]
        return {"PartitionErrors": named}
    return {}


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        server.connections.append(self.connection)
        while len(prefix := self.rfile.read(FRAME_LENGTH_BYTES)) == FRAME_LENGTH_BYTES:
            frame = self.rfile.read(int.from_bytes(prefix, "big"))
            self.wfile.write(server.broker.answer(frame))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, broker: SimulatedBroker) -> None:
        super().__init__((LOOPBACK, 0), _Connection)
        self.broker = broker
        self.connections: list[Any] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections end in the middle of a story."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            connection.close()
