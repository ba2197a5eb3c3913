"""Decisions for tests of the translation, and the image before them."""

from collections.abc import Sequence
from typing import Any

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import Entry, translate
from brokers.wire.metadata.record_frame import Record, decode_record, encode_record
from state.decisions import (
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    LeaderAndIsr,
    QuorumDecision,
    TopicDecision,
)
from state.reason import Reason
from state.registration import Feature, Listener

ID, OTHER_ID = "aaaaaaaaaaaaaaaaaaaaaQ", "bbbbbbbbbbbbbbbbbbbbbQ"
DIRECTORIES = {broker: f"{broker}dddddddddddddddddddQ"[:21] + "Q" for broker in (1, 2, 3, 4)}
MOVED = "mmmmmmmmmmmmmmmmmmmmmQ"


def common(seq: int = 9) -> dict[str, Any]:
    return {"seq": seq, "controller_epoch": 1, "time_ms": 1_000 + seq, "reason": Reason.REQUEST_DONE}


def quorum(seq: int = 9, *, voter: int = 100, epoch: int = 1) -> QuorumDecision:
    return QuorumDecision(**common(seq), voter=voter, incarnation="g", voters=(100, 101), quorum_epoch=epoch)


def broker(number: int, state: str = "active", **fields: Any) -> BrokerDecision:
    defaults = {
        "broker_epoch": number,
        "incarnation": f"{number}iiiiiiiiiiiiiiiiiiiiQ",
        "rack": None,
        "listeners": (Listener("PLAINTEXT", "h", 9_092),),
        "log_dirs": (DIRECTORIES[number],),
        "features": (Feature("metadata.version", 7, 27),),
    }
    return BrokerDecision(**common(), broker=number, state=state, **(defaults | fields))


def topic(state: str = "created", topic_id: str = ID, **config: str) -> TopicDecision:
    return TopicDecision(**common(), topic="t", topic_id=topic_id, state=state, config=config)


def partition(leader_epoch: int = 0, partition_epoch: int = 0, **fields: Any) -> LeaderAndIsr:
    defaults = {
        "topic": "t",
        "topic_id": ID,
        "partition": 0,
        "leader": 1,
        "isr": (1, 2, 3),
        "replicas": (1, 2, 3),
        "adding_replicas": (),
        "removing_replicas": (),
        "leader_recovery_state": "RECOVERED",
        "is_new": False,
        "unclean": False,
        "to": (),
    }
    return LeaderAndIsr(**common(), leader_epoch=leader_epoch, partition_epoch=partition_epoch, **(defaults | fields))


def config(entity: str, name: str | None, **settings: str) -> ConfigDecision:
    return ConfigDecision(**common(), entity=entity, name=name, config=settings)


BROKERS = [broker(1), broker(2), broker(3)]
EARLIER = [quorum(), *BROKERS, topic(a="1"), partition()]


def after(decisions: Sequence[AnyDecision]) -> MetadataImage:
    return translate(MetadataImage(), decisions).image


def records(*decisions: AnyDecision, earlier: Sequence[AnyDecision] = EARLIER) -> list[Record]:
    """Return the records of the decisions on one event, which follow ``earlier`` ones."""
    entry = translate(after(earlier), decisions).entry
    return records_in(entry)


def records_in(entry: Entry | None) -> list[Record]:
    return [] if entry is None else [decode_record(record) for record in entry.records]


def whole(records: Sequence[Record]) -> list[Record]:
    """Return records with every field of their schema, as a broker reads them."""
    return [decode_record(encode_record(*record)) for record in records]


def change(**fields: Any) -> list[Record]:
    return [Record("PartitionChangeRecord", 1, {"PartitionId": 0, "TopicId": ID, **fields})]


def registration_change(**fields: int) -> list[Record]:
    return [Record("BrokerRegistrationChangeRecord", 2, {"BrokerId": 1, "BrokerEpoch": 1, **fields})]


def settings(kind: int, resource: str, **values: str | None) -> list[Record]:
    return [
        Record("ConfigRecord", 0, {"ResourceType": kind, "ResourceName": resource, "Name": name, "Value": value})
        for name, value in values.items()
    ]
