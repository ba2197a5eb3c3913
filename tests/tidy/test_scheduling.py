"""How test files are shared between workers (``tests/support/scheduling.py``)."""

import re
from types import SimpleNamespace
from typing import Any

from tests.support.scheduling import FIRST, IN_ONE_SESSION, ON_ONE_NODE, put_in_order, scope_of
from tests.tidy.test_tidy import name_of, python_files


def test_all_files_on_the_shared_kafka_node_run_on_one_worker() -> None:
    users = {
        name_of(path)
        for path in python_files("tests")
        if re.search(r"\b(kafka_(servers|url)|bus: KafkaBus)\b", path.read_text()) and path.stem.startswith("test_")
    }
    assert users - {"tests/tidy/test_scheduling.py"} == ON_ONE_NODE
    assert len({scope_of(file) for file in ON_ONE_NODE}) == 1


def test_all_files_that_build_a_spark_session_run_on_one_worker_and_the_last_one_ends_it() -> None:
    texts = {name_of(path): path.read_text() for path in python_files("tests")}
    users = {file for file, text in texts.items() if re.search(r"^    .*\bbuild_session\(", text, re.MULTILINE)}
    assert users - {"tests/tidy/test_scheduling.py"} == set(IN_ONE_SESSION)
    assert len({scope_of(file) for file in IN_ONE_SESSION} | {scope_of(min(ON_ONE_NODE))}) == 2
    assert [file for file in IN_ONE_SESSION if "end_session(" in texts[file]] == [IN_ONE_SESSION[-1]]


def test_long_files_come_first_and_quick_ones_last() -> None:
    kafka = min(ON_ONE_NODE)
    counts = {"tests/quick.py": 3, "tests/cluster.py": 2, kafka: 1, "tests/engine.py": 1, FIRST: 2}
    slow = {"tests/cluster.py", kafka, "tests/engine.py", FIRST}
    items: list[Any] = [
        SimpleItem(f"{file}::test_{number}", file in slow) for file, count in counts.items() for number in range(count)
    ]
    put_in_order(items)
    assert IN_ONE_SESSION[-1] == FIRST
    order = list(dict.fromkeys(item.nodeid.split("::")[0] for item in items))
    assert order == [FIRST, kafka, "tests/engine.py", "tests/cluster.py", "tests/quick.py"]


class SimpleItem(SimpleNamespace):
    """The part of a test that its place in the order depends on."""

    def __init__(self, nodeid: str, is_slow: bool) -> None:
        super().__init__(nodeid=nodeid, is_slow=is_slow)

    def __hash__(self) -> int:
        return hash(self.nodeid)

    def get_closest_marker(self, name: str) -> object:
        return self.is_slow or None
