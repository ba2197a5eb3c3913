"""Records of decisions are short and complete, and every link to a document or a heading leads to one."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT, name_of, text_files, tracked

RECORDS = ROOT / "docs" / "decisions"
WORDS_MAX = 250
FORM = re.compile(
    r"# (\d+)\. .+\n\n\d{4}-\d\d-\d\d(, changed \d{4}-\d\d-\d\d)?\. In force\.\n\n"
    r"\*\*Context\.\*\* .+\n\n\*\*Decision\.\*\* .+\n\n\*\*Price\.\*\* .+\n",
    re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([\w-]+)\)")
NAMED = re.compile(r"(?<![\w/.-])(docs/[\w/.-]+\.(?:md|png|svg))(?:#([\w-]+))?")


def records() -> list[Path]:
    return sorted(RECORDS.glob("[0-9]*.md"))


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", records(), ids=lambda path: path.stem)
def test_a_record_has_its_parts_and_is_short(path: Path) -> None:
    text = path.read_text()
    form = FORM.fullmatch(text)
    assert form, "the form is: # N. Title, a date, Context, Decision, Price"
    assert path.name.startswith(f"{int(form[1]):03}-")
    assert len(text.split()) <= WORDS_MAX


def test_links_to_headings_lead_to_headings() -> None:
    broken = [
        f"{name_of(path)}: {target}#{anchor}"
        for path in tracked()
        if path.suffix == ".md"
        for target, anchor in LINK.findall(path.read_text())
        if anchor not in anchors(path.parent / target if target else path)
    ]
    assert broken == []


def test_documents_that_code_settings_and_alerts_name_are_there() -> None:
    broken = [
        f"{name}: {path}#{anchor}"
        for name, text in text_files()
        for path, anchor in NAMED.findall(text)
        if not (ROOT / path).is_file() or (anchor and anchor not in anchors(ROOT / path))
    ]
    assert broken == []
