"""Version 1 of the contract is complete, and docs/contract.md lists what the state has besides, and unused fields."""

import re
from pathlib import Path
from typing import Any

import msgspec

from state.decisions import KIND_RANK, AnyDecision, Decision
from state.events import AnyEvent, Event
from state.view import view_of
from tests.support.world import World

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "contract.md"

EVENTS = {
    "broker_register": "broker incarnation rack listeners log_dirs previous_broker_epoch",
    "broker_heartbeat": "broker broker_epoch want_fence want_shutdown caught_up offline_log_dirs",
    "broker_connection_lost": "broker broker_epoch",
    "broker_unregister": "broker",
    "controlled_shutdown": "broker broker_epoch",
    "alter_isr": "topic partition broker broker_epoch leader_epoch partition_epoch isr isr_epochs "
    "leader_recovery_state",
    "log_end_offset": "topic partition broker leader_epoch log_end_offset log_start_offset",
    "replica_report": "topic partition broker broker_epoch leader_epoch outcome error",
    "create_topic": "topic partitions replication_factor assignment config validate_only",
    "delete_topic": "topic",
    "create_partitions": "topic total assignment",
    "alter_reassignment": "topic partition replicas",
    "elect_leaders": "election_type partitions",
    "alter_config": "entity name config",
    "controller_started": "controller_id controller_epoch",
    "tick": "",
}
DECISIONS = {
    "leader_and_isr": "topic topic_id partition leader leader_epoch isr partition_epoch replicas adding_replicas "
    "removing_replicas leader_recovery_state is_new unclean to",
    "stop_replica": "topic topic_id partition leader_epoch delete to",
    "topic": "topic topic_id state config",
    "broker": "broker broker_epoch incarnation state rack listeners",
    "high_watermark": "topic partition leader_epoch high_watermark",
    "answer": "request_id error message broker_epoch leader leader_epoch isr partition_epoch",
    "config": "entity name config",
    "rejected": "raw field message",
}
STATE = {
    "brokers": "broker broker_epoch state rack",
    "topics": "topic topic_id state config",
    "partitions": "topic partition state leader leader_epoch partition_epoch isr replicas adding_replicas "
    "removing_replicas leader_recovery_state high_watermark replica_states",
}

Fields = dict[str, bool]


def fields_of(union: Any, common: Any) -> dict[str, Fields]:
    """Return each kind's fields, and whether each may be missing."""
    shared = {field.encode_name for field in msgspec.structs.fields(common)}
    return {
        kind.__struct_config__.tag: {
            field.encode_name: not field.required
            for field in msgspec.structs.fields(kind)
            if field.encode_name not in shared
        }
        for kind in union.__args__
    }


def documented() -> dict[str, dict[str, Fields]]:
    """Read the tables: each kind's fields from all of its rows, by the table's heading in lower case."""
    found: dict[str, dict[str, Fields]] = {}
    for title, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL):
        kinds = found.setdefault(title.lower(), {})
        for kind, cell in re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE):
            outer = re.sub(r"[\[{].*?[\]}]", "", cell)
            kinds.setdefault(kind, {}).update(
                {name.removesuffix("?"): name.endswith("?") for name in re.findall(r"`(\w+\??)`", outer)}
            )
    return found


def added(now: dict[str, Fields], version_1: dict[str, str]) -> dict[str, Fields]:
    new = {
        kind: {name: may for name, may in fields.items() if name not in version_1.get(kind, "").split()}
        for kind, fields in now.items()
    }
    return {kind: fields for kind, fields in new.items() if fields or kind not in version_1}


def shown() -> dict[str, Fields]:
    """Return the fields of the lists in the state's view, from a small world."""
    world = World(1)
    world.create("t", (1,))
    topic = world.state.topics.get("t")
    assert topic is not None
    view = view_of(world.state.cluster, [topic])
    assert {"controller_epoch", "seq", "time_ms"} <= set(view)
    return {name: dict.fromkeys(view[name][0], False) for name in STATE}


def unused() -> dict[str, Fields]:
    """Return the fields of events that no rule names."""
    rules = "".join(path.read_text() for path in (ROOT / "controller_logic").glob("*.py"))
    found: dict[str, Fields] = {}
    for kind, fields in fields_of(AnyEvent, Event).items():
        names = [name for name in fields if not re.search(rf"\.{name}\b", rules)]
        if names:
            found[kind] = dict.fromkeys(names, False)
    return found


def test_the_first_contract_is_complete() -> None:
    for now, version_1 in ((fields_of(AnyEvent, Event), EVENTS), (fields_of(AnyDecision, Decision), DECISIONS)):
        for kind, names in version_1.items():
            assert set(names.split()) <= set(now[kind]), kind
    assert [name for name, names in STATE.items() if not set(names.split()) <= set(shown()[name])] == []
    assert list(KIND_RANK)[: len(DECISIONS)] == list(DECISIONS), "the canonical order is part of it"


def test_every_addition_to_the_state_is_documented() -> None:
    assert documented()["state"] == {name: fields for name, fields in added(shown(), STATE).items() if fields}


def test_ignored_fields_are_documented() -> None:
    assert documented()["unused"] == unused()
