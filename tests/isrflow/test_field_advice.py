"""The package names a field that is probably mistyped. ISRFLOW_REWRITE=1 writes its list of fields again."""

import json
import os
from pathlib import Path

import msgspec
import pytest

import isrflow
from bus.embedded import EmbeddedBus
from isrflow.field_advice import FILE, advice_about
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


@pytest.mark.filterwarnings("error")
def test_the_package_says_nothing_of_fields_that_it_knows_or_that_are_an_authors_own(path: Path) -> None:
    with isrflow.connect(str(path)) as bus:
        assert bus.publish(CREATE, {**CREATE, "config": {}, "ticket": "A-1", 7: 8}, {"kind": "new", "configs": {}}) == 3
    assert advice_about("create_topic", ["kind", "partitions", "partition"]) == ""
