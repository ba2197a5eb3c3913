"""docs/contract-tables.md and docs/settings.md are complete. ISRFLOW_REWRITE=1 writes their tables again."""

import os
import re
from enum import StrEnum
from pathlib import Path

from state.observed_events import Cause, Certainty
from state.reason import Reason
from tests.support import contract_tables, settings_page
from tests.support.contract_notes import ERRORS, LIMITS
from tests.support.contract_tables import table

DOCS = Path(__file__).parents[2] / "docs"


def expect(name: str, marks: dict[str, str]) -> None:
    path = DOCS / name
    expected = contract_tables.page(marks, path.read_text())
    if os.environ.get("ISRFLOW_REWRITE"):
        path.write_text(expected)
    assert path.read_text() == expected, (
        "to write it again: ISRFLOW_REWRITE=1 pytest tests/tidy/test_contract_tables.py"
    )


def _listed(words: type[StrEnum]) -> str:
    return "\n".join(f"* {name}: {text}" for name, text in contract_tables.word_rows(words))


def test_the_tables_of_the_contract_are_those_of_the_types() -> None:
    limits = [(what, f"{limit:,}", beyond) for what, limit, beyond in LIMITS]
    errors = [f"* `{name}` ({number}): {text}" for name, (number, text) in ERRORS.items()]
    marks = {
        "events": contract_tables.events(),
        "decisions": contract_tables.decisions(),
        "objects": contract_tables.named_values(),
        "limits": table(("of what", "at most", "beyond that"), limits),
        "reasons": _listed(Reason),
        "causes": _listed(Cause),
        "certainties": _listed(Certainty),
        "errors": "\n".join(errors),
    }
    expect("contract-tables.md", marks)


def test_no_field_and_no_reason_is_left_unexplained() -> None:
    tables = contract_tables.events() + contract_tables.decisions() + contract_tables.named_values()
    assert re.findall(r"^\* `[\w?]+`: .*\. $", tables, re.MULTILINE) == []
    words = [row for kind in (Reason, Cause, Certainty) for row in contract_tables.word_rows(kind)]
    assert [name for name, text in words if not text] == []


def test_every_error_of_the_rules_is_explained() -> None:
    assert contract_tables.error_names() == set(ERRORS)


def test_the_page_of_settings_has_every_setting() -> None:
    expect("settings.md", {"settings": settings_page.of_engine(), "gateways": settings_page.of_gateways()})
