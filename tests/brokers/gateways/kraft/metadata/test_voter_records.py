"""The quorum's voters as control records: steps that brokers accept, snapshots, and logs that are read again."""

from collections.abc import Mapping
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.log.snapshots import SnapshotId
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.snapshot import control_records_of
from brokers.gateways.kraft.metadata.translate import translate
from brokers.gateways.kraft.metadata.voters import directory_id_of, entity_of, voter_records
from brokers.wire.record_batch import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE, control_key, decode_batches
from state.decisions import AnyDecision, EntityDecision, QuorumDecision
from state.entity import VOTERS_ID
from tests.controller_logic.test_voters import BOTH, voters, world

MOVED = {"100": "CONTROLLER://elsewhere:1", "101": BOTH["101"], "102": "CONTROLLER://c:1"}


def decided() -> list[AnyDecision]:
    """Voters are written, one comes and one moves, and one goes."""
    started = world()
    told = list(started.decisions)
    for change in (BOTH, MOVED, {"100": None}):
        assert voters(started, change) == "NONE"
        told += started.decisions
    return told


def log_of(decisions: list[AnyDecision]) -> tuple[MetadataImage, bytes]:
    image, data, offset = MetadataImage(), b"", 0
    for _, event in groupby(decisions, key=lambda one: one.seq):
        image, entry = translate(image, list(event))
        if entry is not None:
            written, offset = encode_entry(entry, offset)
            data += written
    return image, data


def test_voters_are_control_records_in_batches_of_their_own() -> None:
    _, data = log_of(decided())
    control = [batch for batch in decode_batches(data) if batch.control]
    keys = [[key for key, _ in batch.records] for batch in control]
    version, named = control_key(KRAFT_VERSION), control_key(KRAFT_VOTERS)
    assert keys == [[control_key(LEADER_CHANGE)], [version, named], [named], [named]]
    assert {batch.leader_epoch for batch in control} == {1}
    first = next(record for record in records_in(data) if record.name == "VotersRecord")
    assert first.values["Voters"][1] == {
        "VoterId": 101,
        "VoterDirectoryId": directory_id_of(101),
        "Endpoints": [{"Name": "CONTROLLER", "Host": "b", "Port": 9093}, {"Name": "TLS", "Host": "b", "Port": 9094}],
        "KRaftVersionFeature": {"MinSupportedVersion": 0, "MaxSupportedVersion": 1},
    }


def test_a_log_and_a_snapshot_that_are_read_again_have_the_same_voters(tmp_path: Path) -> None:
    image, data = log_of(decided())
    assert image.entities[VOTERS_ID].values == {"101": MOVED["101"], "102": MOVED["102"]}
    draft = MetadataDraft(MetadataImage(quorum_epoch=image.quorum_epoch))
    for record in records_in(data):
        draft.replay(record)
    assert draft.image() == image
    snapshot = SnapshotId(7, image.quorum_epoch)
    snapshots.write(tmp_path, snapshot, image, 1_000)
    assert snapshots.read_image(tmp_path, snapshot) == image


def test_a_log_that_begins_after_its_voters_begins_with_them() -> None:
    told = decided()
    image, _ = translate(MetadataImage(), [one for one in told if isinstance(one, EntityDecision)][:1])
    _, entry = translate(image, [one for one in told if isinstance(one, QuorumDecision)])
    assert entry is not None
    assert [one.name for one in entry.voters] == ["KRaftVersionRecord", "VotersRecord"]
    assert entry.voters == tuple(control_records_of(image))


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        ("", "1", 1),
        ("", "123", 1),
        ("1", "12", 1),
        ("1", "2", 1),
        ("12", "34", 2),
        ("1", "234", 3),
        ("1234", "9", 4),
        ("12", "12", 0),
    ],
)
def test_no_step_changes_more_than_one_voter(before: str, after: str, steps: int) -> None:
    def of(text: str) -> dict[str, str]:
        return {voter: f"CONTROLLER://host{voter}:1" for voter in text}

    records = [one for one in voter_records(of(before), of(after)) if one.name == "VotersRecord"]
    sets: list[Mapping[str, str]] = [of(before), *(entity_of(one.values).values for one in records)]
    assert (len(records), sets[-1]) == (steps, of(after))
    for former, present in pairwise(sets[0 if before else 1 :]):
        assert len(present.keys() - former.keys()) <= 1
        assert len(former.keys() - present.keys()) <= 1
