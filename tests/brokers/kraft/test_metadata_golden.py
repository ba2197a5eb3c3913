"""What was decided once comes to the same bytes of the metadata log ever after.

Brokers have read them, gateways hold them on disk, and a start compares them byte by byte with what the decisions
come to now. ``tests/golden/metadata-v1-NAME.decisions.xz`` are decisions as they were once made, which no change
of rules alters; ``metadata-v1.txt`` has the size and the digest of the log of each. A life is added
there by ISRFLOW_REWRITE=1; what stands there is never written anew.
"""

import hashlib
import lzma
import os
from itertools import groupby
from pathlib import Path

from isrflow.brokers.gateways.kraft.log.entries import encode_entry, records_in
from isrflow.brokers.gateways.kraft.metadata.image import MetadataImage
from isrflow.brokers.gateways.kraft.metadata.translate import translate
from isrflow.state.decisions import decode

GOLDEN = Path(__file__).parents[2] / "golden"
DIGESTS = GOLDEN / "metadata-v1.txt"
WHAT_TO_DO = """
Decisions that were made before come to other bytes of the metadata log than they did. Gateways whose log has these
decisions would refuse to start, or would serve brokers another log than the one that they have read, which stops
brokers. Write what you want to write only for decisions to come: give the quorum decision a number of the metadata
format, of which the absence means 1, let the rules name the new one with the next leader, and translate by it; then
these logs stay as they are, and new ones stand beside them as metadata-v2-*.
"""


def log_of(path: Path) -> bytes:
    decisions = [decode(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    image, data, offset = MetadataImage(), bytearray(), 0
    for _, event in groupby(decisions, key=lambda decision: decision.seq):
        image, entry = translate(image, list(event))
        if entry is not None:
            written, offset = encode_entry(entry, offset)
            data += written
    return bytes(data)


def logs() -> dict[str, bytes]:
    return {path.name.split(".")[0]: log_of(path) for path in sorted(GOLDEN.glob("metadata-v1-*.decisions.xz"))}


def digest(data: bytes) -> str:
    return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()}"


def test_decisions_come_to_the_bytes_that_they_came_to() -> None:
    held = dict(line.split(": ") for line in DIGESTS.read_text().splitlines()) if DIGESTS.exists() else {}
    told = {name: digest(data) for name, data in logs().items()}
    if os.environ.get("ISRFLOW_REWRITE"):
        held = told | held
        DIGESTS.write_text("".join(f"{name}: {one}\n" for name, one in sorted(held.items())))
    assert told == held, WHAT_TO_DO


def test_every_record_that_a_log_may_have_is_in_them() -> None:
    assert {record.name for data in logs().values() for record in records_in(data)} == {
        "BrokerRegistrationChangeRecord",
        "ConfigRecord",
        "FeatureLevelRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RemoveTopicRecord",
        "TopicRecord",
        "UnregisterBrokerRecord",
    }
