"""The package names fields that an event does not have. ISRFLOW_REWRITE=1 writes its list of fields again."""

import json
import os
from pathlib import Path

import msgspec
import pytest

import isrflow
from bus.embedded import EmbeddedBus
from isrflow.field_advice import FILE, NAMED_MAX, advice_about
from state.events import AnyEvent

CREATE = {"kind": "create_topic", "topic": "t", "partitions": 1, "replication_factor": 1}
SAID = "create_topic has no field 'configs', so it is ignored; did you mean 'config'"


def test_the_package_knows_the_fields_of_every_event() -> None:
    kinds = {str(kind.__struct_config__.tag): msgspec.structs.fields(kind) for kind in AnyEvent.__args__}
    fields = {kind: sorted({"kind", *(field.encode_name for field in kinds[kind])}) for kind in sorted(kinds)}
    expected = "{\n" + ",\n".join(f' "{kind}": {json.dumps(names)}' for kind, names in fields.items()) + "\n}\n"
    if os.environ.get("ISRFLOW_REWRITE"):
        FILE.write_text(expected)
    assert FILE.read_text() == expected, (
        "to write it again: ISRFLOW_REWRITE=1 pytest tests/isrflow/test_field_advice.py"
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    EmbeddedBus(tmp_path / "bus.db").close()
    return tmp_path / "bus.db"


def test_the_package_warns_of_a_mistyped_field_and_publishes_the_event(path: Path) -> None:
    with isrflow.connect(str(path)) as bus:
        with pytest.warns(UserWarning, match=SAID):
            assert bus.publish({**CREATE, "configs": {"min.insync.replicas": "2"}}) == 1
        with pytest.warns(UserWarning, match=SAID), pytest.raises(isrflow.NoAnswerError):
            bus.ask({**CREATE, "configs": {}}, timeout_s=0.1)


def test_the_package_warns_of_every_other_field_that_the_event_does_not_have(path: Path) -> None:
    said = "create_topic has no field 'settings', so it is ignored; its fields are assignment, config, "
    with isrflow.connect(str(path)) as bus, pytest.warns(UserWarning, match=said):
        bus.publish({**CREATE, "settings": {"min.insync.replicas": "2"}})


@pytest.mark.filterwarnings("error")
def test_the_package_says_nothing_of_fields_that_it_knows_or_of_kinds_that_it_does_not(path: Path) -> None:
    with isrflow.connect(str(path)) as bus:
        assert bus.publish(CREATE, {**CREATE, "config": {}}, {"kind": "new", "configs": {}}) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["ticket"], "no field 'ticket', so it is ignored; its fields are assignment, config, "),
        # One whose like is there.
        (["partitions", "partition"], "no field 'partition', so it is ignored; its fields are "),
        (
            ["configs", "partitons"],
            "no fields 'configs', 'partitons', so they are ignored; did you mean 'config', '",
        ),
        (["configs", 7], "no fields 'configs', '7', so they are ignored; its fields are "),
        ([f"f{n}" for n in range(NAMED_MAX + 2)], "'f9' and 2 more, so they are ignored; "),
    ],
)
def test_every_unknown_field_is_named(given: list[str], said: str) -> None:
    assert said in advice_about("create_topic", ["kind", *given])
