"""ACLs in the metadata log: records of decisions, of snapshots, and of a log that begins after them."""

from itertools import groupby
from typing import Any

import pytest

from brokers.gateways.kraft.metadata.acl_numbers import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSION_TYPES,
    RESOURCE_TYPES,
    acl_of,
    values_of,
)
from brokers.gateways.kraft.metadata.draft import MetadataDraft, ReplayError
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.snapshot import image_of, records_of
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.metadata.record_frame import Record, decode_record
from state import acl as words
from state.acl import Acl
from state.decisions import AclsDecision, AnyDecision, QuorumDecision
from tests.controller_logic.test_acls import ALICE, ALL, BOB, acl, create, delete, world
from tests.support.kraft_image import Broker


def decided() -> list[AnyDecision]:
    started = world()
    told = list(started.decisions)
    create(started, *ALL)
    told += started.decisions
    delete(started, BOB)
    told += started.decisions
    create(started, BOB)
    return told + started.decisions


def written(decisions: list[AnyDecision]) -> tuple[MetadataImage, list[list[bytes]]]:
    image, records = MetadataImage(), []
    for _, event in groupby(decisions, key=lambda one: one.seq):
        image, entry = translate(image, list(event))
        if entry is not None:
            records.append(list(entry.records))
    return image, records


def test_decisions_become_records_that_a_broker_applies() -> None:
    image, records = written(decided())
    names = [[decode_record(one).name for one in entry] for entry in records[1:]]
    added, removed = "AccessControlEntryRecord", "RemoveAccessControlEntryRecord"
    assert names == [[added] * len(ALL), [removed], [added]]
    broker = Broker()
    for record in (one for entry in records for one in entry):
        broker.take(record)
    assert set(image.acls.values()) == set(map(acl, ALL))
    assert {acl_id: acl_of(values) for acl_id, values in broker.acls.items()} == dict(image.acls)


def test_a_snapshot_has_all_acls() -> None:
    image, _ = written(decided())
    records = [decode_record(one) for one in records_of(image)]
    assert image_of(records, image.quorum_epoch) == image


def test_a_log_that_begins_after_acls_begins_with_them() -> None:
    quorum = [one for one in decided() if isinstance(one, QuorumDecision)]
    created = next(one for one in decided() if isinstance(one, AclsDecision))
    image, entry = translate(MetadataImage(), [created])
    assert entry is None
    image, entry = translate(image, quorum)
    assert entry is not None
    names = [decode_record(one).name for one in entry.records]
    assert names.count("AccessControlEntryRecord") == len(ALL)


def test_every_word_has_kafkas_number() -> None:
    tables: list[tuple[Any, dict[str, int]]] = [
        (words.ResourceType, RESOURCE_TYPES),
        (words.PatternType, PATTERN_TYPES),
        (words.Operation, OPERATIONS),
        (words.PermissionType, PERMISSION_TYPES),
    ]
    for literal, numbers in tables:
        assert set(literal.__args__) == set(numbers)
        assert len(set(numbers.values())) == len(numbers)
    one: Acl = acl(ALICE)
    assert acl_of(values_of(one)) == one


@pytest.mark.parametrize("field", ["ResourceType", "PatternType", "Operation", "PermissionType"])
def test_a_record_that_cannot_be_is_refused(field: str) -> None:
    draft = MetadataDraft(MetadataImage())
    values = {"Id": "AAAAAAAAAAAAAAAAAAAABA"} | values_of(acl(ALICE))
    with pytest.raises(ReplayError):
        draft.replay(Record("AccessControlEntryRecord", 0, values | {field: 1}))
    with pytest.raises(ReplayError, match="no ACL"):
        draft.replay(Record("RemoveAccessControlEntryRecord", 0, values))
    draft.replay(Record("AccessControlEntryRecord", 0, values))
    with pytest.raises(ReplayError, match="already"):
        draft.replay(Record("AccessControlEntryRecord", 0, values))
    with pytest.raises(ReplayError, match="no place"):
        draft.replay(Record("BrokerRecord", 0, values))
