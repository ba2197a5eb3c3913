"""Metadata entities in the metadata log: records of decisions, of snapshots, and of a log that begins after them."""

from typing import Any

import pytest
from msgspec.structs import replace

from brokers.gateways.kraft.metadata.image import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, MetadataImage
from brokers.gateways.kraft.metadata.snapshot import image_of, records_of
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.metadata.record_frame import decode_record
from state.decisions import AnyDecision, EntityDecision, QuorumDecision
from state.entity import TOKEN_EXPIRY, TOKEN_ID
from state.features import METADATA_VERSION
from tests.brokers.gateways.kraft.metadata.test_acl_records import written
from tests.controller_logic import test_tokens
from tests.controller_logic.test_entities import ALICE, BOB, CREDENTIAL, GROUP, METRICS, alter, world
from tests.support.kraft_image import Broker

OF_4_2 = {"group.version": 1, "transaction.version": 2, "share.version": 1}
BOTH: dict[str, str | None] = {"user": "alice", "client-id": None}
CHANGES: list[tuple[str, dict[str, str | None], dict[str, Any]]] = [
    ("client_quota", ALICE, {"producer_byte_rate": 1024, "request_percentage": 12.5}),
    ("client_quota", BOTH, {"consumer_byte_rate": 1}),
    ("client_quota", ALICE, {"producer_byte_rate": 2048, "request_percentage": None}),
    ("client_quota", BOTH, {"consumer_byte_rate": None}),
    ("client_quota", BOTH, {"consumer_byte_rate": 7}),
    ("group", GROUP, {"consumer.session.timeout.ms": 50000, "share.isolation.level": "read_committed"}),
    ("group", GROUP, {"consumer.session.timeout.ms": None}),
    ("client_metrics", METRICS, {"interval.ms": 1000, "metrics": ""}),
    ("scram_credential", BOB, CREDENTIAL),
    ("scram_credential", BOB, CREDENTIAL | {"iterations": 8192}),
    ("scram_credential", BOB, dict.fromkeys(CREDENTIAL)),
    ("scram_credential", BOB, CREDENTIAL),
]


def decided() -> list[AnyDecision]:
    started = world()
    told = list(started.decisions)
    for change in CHANGES:
        assert alter(started, *change) == "NONE"
        told += started.decisions
    return told


def test_decisions_become_records_that_a_broker_applies() -> None:
    image, records = written(decided())
    names = [[decode_record(one).name for one in entry] for entry in records[1:]]
    assert names == [
        *(["ClientQuotaRecord"] * number for number in (2, 1, 2, 1, 1)),
        *(["ConfigRecord"] * number for number in (2, 1, 2)),
        *([f"{change}UserScramCredentialRecord"] for change in ("", "", "Remove", "")),
    ]
    broker = Broker()
    for record in (one for entry in records for one in entry):
        broker.take(record)
    assert broker.quotas == {
        (("user", "alice"),): {"producer_byte_rate": 2048.0},
        (("client-id", None), ("user", "alice")): {"consumer_byte_rate": 7.0},
    }
    assert broker.configs[GROUP_RESOURCE, "g"] == {"share.isolation.level": "read_committed"}
    assert broker.configs[CLIENT_METRICS_RESOURCE, "m"] == {"interval.ms": "1000", "metrics": ""}
    [credential] = broker.credentials.values()
    assert (credential["Name"], credential["Mechanism"], credential["Iterations"]) == ("bob", 1, 4096)
    assert (credential["Salt"], credential["StoredKey"]) == (b"salt", bytes(32))
    assert {str(one.names): one.values for one in image.entities.values()} == {
        str(ALICE): {"producer_byte_rate": "2048.0"},
        str(dict(sorted(BOTH.items()))): {"consumer_byte_rate": "7.0"},
        str(dict(sorted(BOB.items()))): CREDENTIAL | {"iterations": "4096"},
    }


def test_a_snapshot_has_all_entities() -> None:
    image, _ = written(decided())
    assert image.entities
    records = [decode_record(one) for one in records_of(image)]
    assert image_of(records, image.quorum_epoch) == image


def test_a_log_that_begins_after_entities_begins_with_them() -> None:
    told = decided()
    created = next(one for one in told if isinstance(one, EntityDecision))
    image, entry = translate(MetadataImage(), [created])
    assert entry is None
    image, entry = translate(image, [one for one in told if isinstance(one, QuorumDecision)])
    assert entry is not None
    assert [decode_record(one).name for one in entry.records].count("ClientQuotaRecord") == len(created.values)


LEVELS: dict[str, Any] = {"group.version": 0, "transaction.version": 1}


def raised() -> list[AnyDecision]:
    started = world()
    started.join(1, features=[{"name": name, "min_version": 0, "max_version": 2} for name in LEVELS])
    told = []
    for levels in (LEVELS, {"transaction.version": 2}):
        assert alter(started, "features", {}, levels) == "NONE"
        told += started.decisions
    return told


def test_levels_of_features_become_records() -> None:
    quorum = [one for one in decided() if isinstance(one, QuorumDecision)]
    image, _ = written([*quorum, *(replace(one, seq=one.seq + 100) for one in raised())])
    assert dict(image.features) == {"metadata.version": 27, "group.version": 0, "transaction.version": 2}
    records = [decode_record(one) for one in records_of(image)]
    assert image_of(records, image.quorum_epoch) == image


@pytest.mark.parametrize(
    ("level", "others"),
    [
        (21, {}),
        (22, {"group.version": 1}),
        (25, {"group.version": 1, "transaction.version": 2}),
        (28, OF_4_2),
        (29, OF_4_2 | {"streams.version": 1}),
    ],
)
def test_a_log_begins_with_the_levels_of_its_metadata_version(level: int, others: dict[str, int]) -> None:
    [chosen] = [one for one in raised() if isinstance(one, EntityDecision)][:1]
    image, _ = translate(MetadataImage(), [replace(chosen, values={METADATA_VERSION: str(level)})])
    [begun] = [one for one in decided() if isinstance(one, QuorumDecision)][:1]
    image, _ = translate(image, [begun])
    assert dict(image.features) == {METADATA_VERSION: level} | others


def test_a_log_that_begins_later_begins_with_the_levels_in_force() -> None:
    first = [one for one in raised() if isinstance(one, EntityDecision)][:1]
    image, entry = translate(MetadataImage(), first)
    assert entry is None
    image, entry = translate(image, [one for one in decided() if isinstance(one, QuorumDecision)])
    assert entry is not None
    assert dict(image.features) == {"metadata.version": 27, "group.version": 0, "transaction.version": 1}
    assert [decode_record(one).name for one in entry.records].count("FeatureLevelRecord") == 3


def of_tokens() -> list[AnyDecision]:
    """Two tokens: one is renewed, and the other is ended by request, made again, and expires."""
    started = test_tokens.world()
    told = list(started.decisions)
    for names, values in (
        (test_tokens.ID, test_tokens.VALUES),
        (test_tokens.OTHER, test_tokens.VALUES | {"renewers": "[]"}),
        (test_tokens.OTHER, {TOKEN_EXPIRY: "80000"}),
        (test_tokens.ID, test_tokens.WHOLE),
        (test_tokens.ID, test_tokens.VALUES),
    ):
        assert test_tokens.token(started, values, names) == "NONE"
        told += started.decisions
    return told + started.tick(40_000)


def test_tokens_become_records_without_their_hmac() -> None:
    image, records = written(of_tokens())
    names = [[decode_record(one).name for one in entry] for entry in records[1:]]
    made, removed = ["DelegationTokenRecord"], ["RemoveDelegationTokenRecord"]
    # The tick also writes the idle log's NoOpRecord.
    assert [one[:1] for one in names] == [made, made, made, removed, made, removed]
    broker = Broker()
    for record in (one for entry in records for one in entry):
        broker.take(record)
    assert broker.tokens == {
        test_tokens.OTHER[TOKEN_ID]: {
            "TokenId": test_tokens.OTHER[TOKEN_ID],
            "Owner": "User:alice",
            "Requester": "User:admin",
            "Renewers": [],
            "IssueTimestamp": 1_000,
            "MaxTimestamp": 90_000,
            "ExpirationTimestamp": 80_000,
        }
    }
    assert image_of([decode_record(one) for one in records_of(image)], image.quorum_epoch) == image
