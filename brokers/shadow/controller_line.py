"""A connection to a controller, and the only requests that a shadow sends over it.

They are a replica's requests without a replica's id. Kafka reads -1 then, and a controller keeps nothing about a fetch
with a negative id (KAFKA-12161): it is no observer, and nothing in the quorum depends on it. So no code here names an
id. With the id of a voter a fetch would count as that voter's acknowledgement, and the quorum could commit what no
majority has.

A FetchSnapshot without a topic ends the controller's process (Kafka 4.1.0). So each request has one shape.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from brokers.wire.catalogue import API_VERSIONS_KEY, Catalogue
from brokers.wire.connection import FrameConnection, RequestConnection
from brokers.wire.metadata.topic import METADATA_TOPIC, METADATA_TOPIC_ID
from brokers.wire.schema import Values
from brokers.wire.security.connecting import Client, connect
from bus.clock import steady_ms
from state.voter_endpoints import address_of

CLIENT_ID = "isrflow-shadow"
# A batch of the metadata log has at most 8 MiB, and a controller answers with one at least.
FETCH_BYTES_MAX = 8 << 20
SNAPSHOT_PIECE_BYTES = 1 << 20
OPEN_TIMEOUT_MS = 5_000
# How long an answer may take, besides the wait that the request asks for.
ANSWER_TIMEOUT_MS = 3_000
_FRAME_BYTES_MAX = 32 << 20
_CATALOGUE = Catalogue("brokers.wire.metadata", "brokers.wire.configs")
# Every version of Kafka with KRaft knows it.
_API_VERSIONS_VERSION = 3
# A proof of SASL is renewed, with a new connection, when this part of its lifetime is over.
_LIFETIME_PART = 0.85
_PRODUCE_KEY = 0
_BROKER_RESOURCE = 4


class Endpoint(NamedTuple):
    """The address of a listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return address_of(self.host, self.port)


class Api(NamedTuple):
    """A request, and the versions of it that serve."""

    name: str
    key: int
    version_min: int
    version_max: int


# Before version 13 a topic has no id in it, and from 18 on it carries the reader's high watermark (KIP-1166).
FETCH = Api("Fetch", 1, 13, 18)
FETCH_SNAPSHOT = Api("FetchSnapshot", 59, 0, 1)
# Version 0 does not say when a node fetched.
DESCRIBE_QUORUM = Api("DescribeQuorum", 55, 1, 2)
DESCRIBE_CLUSTER = Api("DescribeCluster", 60, 1, 1)
DESCRIBE_CONFIGS = Api("DescribeConfigs", 32, 1, 4)
HIGH_WATERMARK_VERSION = 18


class UnfitServerError(Exception):
    """A server is no controller that could be read. The message names it."""


class Position(NamedTuple):
    """A place in the log."""

    offset: int
    # Of the record before it.
    epoch: int


class SnapshotId(NamedTuple):
    """The name of a snapshot: the first offset that it does not cover, and the epoch of the record before that."""

    end_offset: int
    epoch: int


def fetch_values(
    cluster_id: str | None, position: Position, leader_epoch: int, high_watermark: int | None, wait_ms: int
) -> Values:
    """Return a request for the log from a position on; ``high_watermark`` is None if the version has none.

    A controller refuses it if ``cluster_id`` is neither its own nor None.
    """
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": leader_epoch,
        "FetchOffset": position.offset,
        # A later epoch than the leader's is refused.
        "LastFetchedEpoch": min(position.epoch, leader_epoch),
        "PartitionMaxBytes": FETCH_BYTES_MAX,
    }
    if high_watermark is not None:
        partition["HighWatermark"] = high_watermark
    topic = {"TopicId": METADATA_TOPIC_ID, "Partitions": [partition]}
    limits = {"MaxWaitMs": wait_ms, "MinBytes": 1, "MaxBytes": FETCH_BYTES_MAX}
    return {"ClusterId": cluster_id, "Topics": [topic]} | limits


def fetch_snapshot_values(cluster_id: str | None, snapshot: SnapshotId, leader_epoch: int, position: int) -> Values:
    """Return a request for a piece of a snapshot that the leader has just named."""
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": leader_epoch,
        "SnapshotId": {"EndOffset": snapshot.end_offset, "Epoch": snapshot.epoch},
        "Position": position,
    }
    topic = {"Name": METADATA_TOPIC, "Partitions": [partition]}
    return {"ClusterId": cluster_id, "MaxBytes": SNAPSHOT_PIECE_BYTES, "Topics": [topic]}


def describe_quorum_values() -> Values:
    return {"Topics": [{"TopicName": METADATA_TOPIC, "Partitions": [{"PartitionIndex": 0}]}]}


def describe_cluster_values() -> Values:
    """Return a request for the id of the cluster of controllers (KIP-919)."""
    return {"EndpointType": 2}


def describe_configs_values(controller: int, names: Sequence[str]) -> Values:
    """Return a request for some settings of a controller, with what stands in its file below each value in force."""
    resource = {"ResourceType": _BROKER_RESOURCE, "ResourceName": str(controller), "ConfigurationKeys": list(names)}
    return {"Resources": [resource], "IncludeSynonyms": True}


class ControllerLine:
    """An open connection to a controller, which answers one request at a time. Any error closes it."""

    def __init__(self, endpoint: Endpoint, frames: FrameConnection, lifetime_ms: int) -> None:
        self.endpoint = endpoint
        self._requests = RequestConnection(frames, _CATALOGUE, CLIENT_ID)
        self._versions: dict[int, tuple[int, int]] = {}
        self._ends_ms = steady_ms() + int(lifetime_ms * _LIFETIME_PART) if lifetime_ms else None

    @classmethod
    async def open(cls, endpoint: Endpoint, client: Client) -> "ControllerLine":
        """Connect to a controller, and ask which versions it serves.

        Raises ``UnfitServerError``, ``OSError``, ``EOFError``, ``TimeoutError`` or ``WireError``.
        """
        async with asyncio.timeout(OPEN_TIMEOUT_MS / 1000):
            opened = await connect(endpoint.host, endpoint.port, client, CLIENT_ID)
        line = cls(endpoint, FrameConnection(opened.reader, opened.writer, _FRAME_BYTES_MAX), opened.lifetime_ms)
        try:
            await line._learn_versions()
        except BaseException:
            line.close()
            raise
        return line

    async def _learn_versions(self) -> None:
        software = {"ClientSoftwareName": "isrflow", "ClientSoftwareVersion": "shadow"}
        answer = await self._ask(API_VERSIONS_KEY, _API_VERSIONS_VERSION, software, 0)
        if answer["ErrorCode"]:
            raise UnfitServerError(f"{self.endpoint} does not say which versions it serves: {answer['ErrorCode']}")
        self._versions = {one["ApiKey"]: (one["MinVersion"], one["MaxVersion"]) for one in answer["ApiKeys"]}
        if _PRODUCE_KEY in self._versions:
            raise UnfitServerError(
                f"{self.endpoint} is a broker's listener, which does not serve the metadata log: "
                "expected the listener of a controller"
            )
        self.version(FETCH)

    @property
    def is_due(self) -> bool:
        """Whether the other side will soon stop believing this side's proof."""
        return self._ends_ms is not None and steady_ms() >= self._ends_ms

    def version(self, api: Api) -> int:
        """Return the version in which a request is sent. Raises ``UnfitServerError`` if the server knows none."""
        low, high = self._versions.get(api.key, (0, -1))
        version = min(high, api.version_max)
        if version < max(low, api.version_min):
            raise UnfitServerError(
                f"{self.endpoint} serves {api.name} in versions {low} to {high}: "
                f"expected one of {api.version_min} to {api.version_max}"
            )
        return version

    async def ask(self, api: Api, values: Values, wait_ms: int = 0) -> Values:
        """Send a request, and return the answer; ``wait_ms`` is how long the controller may wait for something to say.

        Raises ``UnfitServerError``, ``OSError``, ``TimeoutError`` or ``WireError``.
        """
        return await self._ask(api.key, self.version(api), values, wait_ms)

    async def _ask(self, key: int, version: int, values: Values, wait_ms: int) -> Values:
        return await self._requests.ask(key, version, values, ANSWER_TIMEOUT_MS + wait_ms)

    def close(self) -> None:
        self._requests.close()
