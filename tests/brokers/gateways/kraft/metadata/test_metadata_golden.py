"""Old decisions always give the same bytes of the metadata log.

Brokers have read them, gateways hold them on disk, and a start compares them byte by byte with what the decisions
give now. ``tests/golden/metadata-vN-NAME.decisions.xz`` are decisions as they were once made, which no change
of rules alters; ``metadata-vN.txt`` has the size and the digest of the log of each. N is the newest format of the
metadata log that is in them. ISRFLOW_REWRITE=1 adds a new log there; existing lines are never rewritten.
"""

import hashlib
import lzma
import os
from itertools import groupby
from pathlib import Path

import pytest
from msgspec import UNSET

from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from state.decisions import QuorumDecision, decode
from state.metadata_format import ACL_FORMAT, ENTITY_FORMAT, FIRST_FORMAT, NEWEST_FORMAT, NO_OP_FORMAT, TOKEN_FORMAT

GOLDEN = Path(__file__).parents[4] / "golden"
FORMATS = range(FIRST_FORMAT, NEWEST_FORMAT + 1)
WHAT_TO_DO = """
Earlier decisions now give other bytes of the metadata log. Gateways whose log has these
decisions would refuse to start, or would serve brokers another log than the one that they have read, which stops
brokers. Write what you want to write only for decisions to come: begin another format (``state/metadata_format.py``),
which the rules name when all gateways can write it, and let decisions say from then on what they did not say before.
Then these logs stay as they are, and new ones stand beside them under the next number.
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


def logs(number: int) -> dict[str, bytes]:
    paths = sorted(GOLDEN.glob(f"metadata-v{number}-*.decisions.xz"))
    return {path.name.split(".")[0]: log_of(path) for path in paths}


def digest(data: bytes) -> str:
    return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()}"


@pytest.mark.parametrize("number", FORMATS)
def test_old_decisions_still_give_the_same_bytes(number: int) -> None:
    digests = GOLDEN / f"metadata-v{number}.txt"
    held = dict(line.split(": ") for line in digests.read_text().splitlines()) if digests.exists() else {}
    response = {name: digest(data) for name, data in logs(number).items()}
    if os.environ.get("ISRFLOW_REWRITE"):
        held = response | held
        digests.write_text("".join(f"{name}: {one}\n" for name, one in sorted(held.items())))
    assert response, f"there is no log of format {number}"
    assert response == held, WHAT_TO_DO


def test_each_golden_log_has_the_format_of_its_number_or_older() -> None:
    for number in FORMATS:
        for path in GOLDEN.glob(f"metadata-v{number}-*.decisions.xz"):
            decisions = [decode(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
            found = [one.metadata_format for one in decisions if isinstance(one, QuorumDecision)]
            assert max(FIRST_FORMAT if one is UNSET else one for one in found) == number


def test_every_kind_of_record_is_in_a_golden_log() -> None:
    assert {record.name for data in logs(FIRST_FORMAT).values() for record in records_in(data)} == {
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
    assert "NoOpRecord" in {record.name for data in logs(NO_OP_FORMAT).values() for record in records_in(data)}
    of_acls = {"AccessControlEntryRecord", "RemoveAccessControlEntryRecord"}
    assert of_acls <= {record.name for data in logs(ACL_FORMAT).values() for record in records_in(data)}
    of_entities = {"ClientQuotaRecord", "UserScramCredentialRecord", "RemoveUserScramCredentialRecord"}
    assert of_entities <= {record.name for data in logs(ENTITY_FORMAT).values() for record in records_in(data)}
    of_tokens = {"DelegationTokenRecord", "RemoveDelegationTokenRecord"}
    assert of_tokens <= {record.name for data in logs(TOKEN_FORMAT).values() for record in records_in(data)}
