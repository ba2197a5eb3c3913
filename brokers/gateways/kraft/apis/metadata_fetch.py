"""How brokers follow the metadata log (``KafkaRaftClient``: Fetch, FetchSnapshot; KIP-595, KIP-630).

The problem: a broker asks for records from an offset, and names the epoch of the last record that it has. Its log may
end before this one starts, differ from it, or be longer. Kafka's controllers have a protocol for each case, and a
broker that gets the wrong answer throws away metadata, or stops.

The insight: no gateway votes, and nothing in this log can be lost to another leader, because it is made of committed
decisions. So its end is the high watermark, and each case follows from the log alone:

    the reader's epoch differs, or another gateway leads    refused; the leader is named
    it has read more of an epoch than there is              asked to try again, after a wait
    it ends before this log starts                          sent to the newest snapshot
    its records differ from these                           told where they begin to differ
    it has read everything                                  waits for the next record
    anything else                                           gets records

The second case is not in Kafka, where a leader has all committed records. Here the log may come from a backup.
"""

import msgspec
import structlog

from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.log.file_ids import GATEWAY_LOG_TOPIC, LIST, name_of
from brokers.gateways.kraft.messages import Request
from brokers.wire.errors import ErrorCode
from brokers.wire.metadata.topic import METADATA_TOPIC, METADATA_TOPIC_ID
from brokers.wire.schema import Values
from brokers.wire.server import Peer

logger = structlog.get_logger()

_EPOCHED_VERSION = 15
_ENDPOINTS_VERSION = 16


async def fetch(context: Context, request: Request, peer: Peer) -> Values:
    """Give a broker the records that follow in the log. If there are none, wait as long as the broker allows.

    Everything on disk here is committed, so the high watermark is the log's end, and the response carries it.
    """
    body = request.values
    if body["ClusterId"] not in (None, context.identity.cluster_id):
        return {"ErrorCode": ErrorCode.INCONSISTENT_CLUSTER_ID}
    wanted_partition = _metadata_partition(body)
    if wanted_partition is None:
        return {"ErrorCode": ErrorCode.INVALID_REQUEST}
    replica = body["ReplicaState"]["ReplicaId"] if request.version >= _EPOCHED_VERSION else body["ReplicaId"]
    refused = _refused(context, wanted_partition["CurrentLeaderEpoch"])
    if refused is None and _is_ahead(context, replica, wanted_partition):
        await context.storage.until_appended(_wait_ms(context, body))
        return {"ErrorCode": ErrorCode.BROKER_NOT_AVAILABLE}
    partition = refused or _elsewhere(context, wanted_partition)
    if partition is None:
        context.quorum_view.has_fetched(replica, wanted_partition["FetchOffset"], context.storage.end_offset)
        await _until_there_is_more(context, body, wanted_partition)
        # Another gateway may lead since the wait. Then this one must not answer from its log.
        partition = _refused(context, wanted_partition["CurrentLeaderEpoch"]) or _read(context, body, wanted_partition)
    leader = {"LeaderId": context.quorum_view.leader, "LeaderEpoch": context.quorum_view.quorum_epoch}
    topic = {"Topic": METADATA_TOPIC, "TopicId": METADATA_TOPIC_ID}
    response = topic | {"Partitions": [partition | {"CurrentLeader": leader}]}
    endpoints = [one | {"Rack": None} for one in context.endpoints] if request.version >= _ENDPOINTS_VERSION else []
    return {"Responses": [response], "NodeEndpoints": endpoints}


def _is_ahead(context: Context, replica: int, wanted_partition: Values) -> bool:
    """Return whether a broker has read more of its epoch than this log has, which then lacks records that were served.

    The log may come from a backup, and may have continued in a later epoch. If the broker were told where the logs
    differ, it would stop and set its partitions aside. So it is told to ask again, until a gateway leads whose log has
    those records. This holds for an unknown broker too, because it may have registered after the backup.
    """
    offset, epoch = wanted_partition["FetchOffset"], wanted_partition["LastFetchedEpoch"]
    ends = context.storage.end_of_epoch(epoch)
    if not 0 <= ends.end_offset < offset or replica < 0:
        return False
    if context.storage.snapshot_for(offset, epoch) is not None:
        return False
    logger.error(
        "a broker has read more of the metadata log than there is",
        broker=replica,
        offset=offset,
        epoch=epoch,
        ends_at=ends.end_offset,
        hint="were the bus and this log put back from a backup? They cannot lead brokers that have read more",
    )
    return True


def _metadata_partition(body: Values) -> Values | None:
    named = [(topic, one) for topic in body["Topics"] for one in topic["Partitions"]]
    if len(named) != 1:
        return None
    topic, partition = named[0]
    is_metadata = topic["TopicId"] == METADATA_TOPIC_ID or topic["Topic"] == METADATA_TOPIC
    return partition if is_metadata and partition["Partition"] == 0 else None


def _refused(context: Context, epoch: int) -> Values | None:
    """Refuse if the reader's quorum epoch differs or this gateway does not lead. The response names the leader."""
    quorum_view = context.quorum_view
    if not quorum_view.leads and epoch == quorum_view.quorum_epoch:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif epoch < quorum_view.quorum_epoch:
        error = ErrorCode.FENCED_LEADER_EPOCH
    elif epoch > quorum_view.quorum_epoch:
        error = ErrorCode.UNKNOWN_LEADER_EPOCH
    else:
        return None
    return {"ErrorCode": error, "HighWatermark": -1, "LogStartOffset": -1, "Records": b""}


def _elsewhere(context: Context, wanted_partition: Values) -> Values | None:
    """Answer a reader that cannot continue: name a snapshot, or where the reader's log differs from this one."""
    log, offset, epoch = context.storage, wanted_partition["FetchOffset"], wanted_partition["LastFetchedEpoch"]
    bounds = {"HighWatermark": log.end_offset, "LogStartOffset": log.start_offset, "Records": b""}
    snapshot = log.snapshot_for(offset, epoch)
    if snapshot is not None:
        return bounds | {"SnapshotId": {"EndOffset": snapshot.end_offset, "Epoch": snapshot.epoch}}
    if (offset, epoch) == (0, 0):
        return None
    ends = log.end_of_epoch(epoch)
    if ends.epoch != epoch or ends.end_offset < offset:
        return bounds | {"DivergingEpoch": {"Epoch": ends.epoch, "EndOffset": ends.end_offset}}
    return None


async def _until_there_is_more(context: Context, body: Values, wanted_partition: Values) -> None:
    # A broker that has not heard of the high watermark yet is answered at once.
    log = context.storage
    if wanted_partition["FetchOffset"] >= log.end_offset and wanted_partition["HighWatermark"] >= log.end_offset:
        await log.until_appended(_wait_ms(context, body))


def _wait_ms(context: Context, body: Values) -> int:
    return min(int(body["MaxWaitMs"]), context.settings.fetch_max_wait_ms)


def _read(context: Context, body: Values, wanted_partition: Values) -> Values:
    log = context.storage
    # PartitionMaxBytes does not count, because brokers leave it at 0 in fetches of the metadata log.
    size = min(body["MaxBytes"], context.settings.fetch_max_bytes)
    records = log.read(wanted_partition["FetchOffset"], size)
    return {"HighWatermark": log.end_offset, "LogStartOffset": log.start_offset, "Records": records}


async def fetch_snapshot(context: Context, request: Request, peer: Peer) -> Values:
    """Return a piece of a snapshot. If another gateway asks, return a piece of any file of the log."""
    body = request.values
    if body["ClusterId"] not in (None, context.identity.cluster_id):
        return {"ErrorCode": ErrorCode.INCONSISTENT_CLUSTER_ID}
    topics = body["Topics"]
    pieces = {METADATA_TOPIC: _snapshot_piece, GATEWAY_LOG_TOPIC: _gateway_log_piece}
    if len(topics) != 1 or topics[0]["Name"] not in pieces or len(topics[0]["Partitions"]) != 1:
        return {"ErrorCode": ErrorCode.INVALID_REQUEST}
    name, wanted_partition = topics[0]["Name"], topics[0]["Partitions"][0]
    partition = await pieces[name](context, body, wanted_partition) | {
        "Index": wanted_partition["Partition"],
        "CurrentLeader": {"LeaderId": context.quorum_view.leader, "LeaderEpoch": context.quorum_view.quorum_epoch},
    }
    return {
        "Topics": [{"Name": name, "Partitions": [partition]}],
        "NodeEndpoints": context.endpoints if request.version >= 1 else [],
    }


async def _snapshot_piece(context: Context, body: Values, wanted_partition: Values) -> Values:
    refused = _refused(context, wanted_partition["CurrentLeaderEpoch"])
    wanted = wanted_partition["SnapshotId"]
    answers = {"SnapshotId": wanted, "UnalignedRecords": b""}
    if refused is not None:
        return answers | {"ErrorCode": refused["ErrorCode"]}
    size = min(max(body["MaxBytes"], 0), context.settings.fetch_max_bytes)
    piece = context.storage.read_snapshot(wanted["EndOffset"], wanted["Epoch"], wanted_partition["Position"], size)
    if piece is None:
        return answers | {"ErrorCode": ErrorCode.SNAPSHOT_NOT_FOUND}
    if wanted_partition["Position"] < 0 or wanted_partition["Position"] >= piece.size:
        return answers | {"ErrorCode": ErrorCode.POSITION_OUT_OF_RANGE}
    return answers | {"Size": piece.size, "Position": wanted_partition["Position"], "UnalignedRecords": piece.data}


async def _gateway_log_piece(context: Context, body: Values, partition: Values) -> Values:
    """Return a piece of a file of this log to another gateway, which copies it. Brokers do not request these.

    The ids of files are those of ``log.file_ids``, and the list of all files is JSON. Any gateway may be asked, because
    all files follow from the decisions.
    """
    wanted, position = partition["SnapshotId"], partition["Position"]
    size = min(max(body["MaxBytes"], 0), context.settings.fetch_max_bytes)
    answer = {"SnapshotId": wanted, "UnalignedRecords": b""}
    if position < 0:
        return answer | {"ErrorCode": ErrorCode.POSITION_OUT_OF_RANGE}
    if dict(wanted) == LIST:
        listed = msgspec.json.encode(await context.storage.files())
        return answer | {"Size": len(listed), "Position": 0, "UnalignedRecords": listed}
    found = context.storage.read_file(name_of(wanted), position, size)
    if found is None:
        return answer | {"ErrorCode": ErrorCode.SNAPSHOT_NOT_FOUND}
    return answer | {"Size": found.size, "Position": position, "UnalignedRecords": found.data}
