"""Simulated brokers in ZooKeeper mode: znodes and listeners that note what the controller sends, and obey at once.

They decode nothing while a step is measured, because they share the machine with the controller.
"""

import asyncio
import json
import threading
import time
from typing import Any, NamedTuple

from kazoo.client import KazooClient

from brokers.gateways.zk import znodes
from brokers.gateways.zk.messages import CATALOGUE, UPDATE_METADATA
from brokers.launch.kafka.properties import LOOPBACK
from brokers.wire.catalogue import API_VERSIONS_KEY, framed
from brokers.wire.messages import FRAME_LENGTH_BYTES
from tests.support.waiting import TIMEOUT_S

_LISTENER = "PLAINTEXT"


class Heard(NamedTuple):
    """A request, and when it came."""

    at_s: float
    broker: int
    frame: bytes


class Told(NamedTuple):
    """A partition's state as brokers were told."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class ZookeeperBrokers:
    """Brokers 1 to ``count``. ``heard`` grows with each request that one of them gets."""

    def __init__(self, zookeeper: str, count: int) -> None:
        self.heard: list[Heard] = []
        # The transactions that made the brokers' znodes.
        self.epochs: dict[int, int] = {}
        self._client = KazooClient(zookeeper, timeout=TIMEOUT_S)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="brokers", daemon=True)
        self._ports: dict[int, int] = {}
        self._everyone = range(1, count + 1)
        self._writers: dict[int, set[asyncio.StreamWriter]] = {number: set() for number in self._everyone}
        self._servers: list[asyncio.Server] = []
        self._alive: set[int] = set()

    def start(self) -> None:
        """Listen, and let all brokers appear in ZooKeeper, where a controller must be."""
        self._client.start(TIMEOUT_S)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(TIMEOUT_S)
        for number in self._everyone:
            self.appear(number)

    def stop(self) -> None:
        """Close all connections. The session with ZooKeeper ends, and with it all znodes of brokers."""
        self._client.stop()
        self._client.close()
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(TIMEOUT_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(TIMEOUT_S)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for writers in self._writers.values():
            for writer in list(writers):
                writer.close()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    async def _listen(self) -> None:
        for number in self._everyone:
            server = await asyncio.start_server(self._serving(number), LOOPBACK, 0)
            self._servers.append(server)
            self._ports[number] = server.sockets[0].getsockname()[1]

    def appear(self, broker: int) -> None:
        """Have a broker appear in ZooKeeper."""
        port = self._ports[broker]
        text = {
            "version": 5,
            "host": LOOPBACK,
            "port": port,
            "jmx_port": -1,
            "timestamp": "1",
            "endpoints": [f"{_LISTENER}://{LOOPBACK}:{port}"],
            "listener_security_protocol_map": {_LISTENER: _LISTENER},
            "features": {},
        }
        self._alive.add(broker)
        path = f"{znodes.BROKERS}/{broker}"
        self._client.create(path, json.dumps(text).encode(), ephemeral=True)
        self.epochs[broker] = self._client.get(path)[1].czxid

    def disappear(self, broker: int) -> None:
        """Have a broker end, and its session with it."""
        self._alive.discard(broker)

        def close() -> None:
            for writer in self._writers[broker]:
                writer.close()

        self._loop.call_soon_threadsafe(close)
        self._client.delete(f"{znodes.BROKERS}/{broker}")

    def metadata(self, broker: int, since: int) -> dict[tuple[str, int], Told]:
        """Return the newest state that a broker was told of each partition, from a place in ``heard`` on."""
        found: dict[tuple[str, int], Told] = {}
        for one in self.heard[since:]:
            if one.broker == broker and CATALOGUE.decode_header(one.frame).api_key == UPDATE_METADATA:
                for topic in CATALOGUE.decode_request(one.frame).values["TopicStates"]:
                    for state in topic["PartitionStates"]:
                        told = Told(state["Leader"], state["LeaderEpoch"], tuple(state["Isr"]), state["ZkVersion"])
                        found[topic["TopicName"], state["PartitionIndex"]] = told
        return found

    def _serving(self, broker: int) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._writers[broker].add(writer)
            try:
                while broker in self._alive:
                    size = int.from_bytes(await reader.readexactly(FRAME_LENGTH_BYTES), "big")
                    frame = await reader.readexactly(size)
                    if int.from_bytes(frame[:2], "big") == API_VERSIONS_KEY:
                        # A gateway keeps asking whether the broker answers. That is no load.
                        writer.write(_answering(frame))
                        continue
                    self.heard.append(Heard(time.monotonic(), broker, frame))
                    writer.write(_obeyed(frame))
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                self._writers[broker].discard(writer)
                writer.close()

        return serve


def _answering(frame: bytes) -> bytes:
    """Answer ApiVersions in version 0: no error, and no API."""
    answer = frame[4:8] + bytes(6)
    return len(answer).to_bytes(FRAME_LENGTH_BYTES, "big") + answer


def _obeyed(frame: bytes) -> bytes:
    """Answer that everything was done. A partition without a code has the code of the whole request."""
    header = CATALOGUE.decode_header(frame)
    return framed(CATALOGUE.encode_response(header.api_key, header.version, header.correlation_id, {}))
