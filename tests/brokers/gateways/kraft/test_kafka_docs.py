"""docs/kafka.md lists what a gateway serves; ISRFLOW_REWRITE=1 rewrites the table."""

import os
import re
from pathlib import Path

import pytest

from brokers.gateways.kraft import settings
from brokers.gateways.kraft.log import comparison, directory
from brokers.gateways.kraft.messages import layouts
from brokers.gateways.kraft.serving import APIS
from conf.kafka_versions import KAFKA_VERSIONS
from state.features import METADATA_VERSIONS
from state.policy import Policy

ROOT = Path(__file__).parents[4]
DOCS = ROOT / "docs" / "kafka.md"
BEGIN, END = "<!-- apis -->\n", "<!-- end of apis -->"


def table() -> str:
    requests = (layout for layout in layouts().values() if layout.kind == "request")
    names = {layout.api_key: layout.name.removesuffix("Request") for layout in requests}
    rows = ["| API | key | versions | how |", "|---|---|---|---|"]
    for key, api in sorted(APIS.items()):
        served = f"{api.min_version}-{api.max_version}" if api.max_version > api.min_version else str(api.max_version)
        how = ", ".join(["forwarded"] * api.is_forwarded + ["leader"] * api.is_leaders)
        rows.append(f"| {names[key]} | {key} | {served} | {how} |")
    return "\n".join(rows) + "\n"


def test_the_docs_list_every_api() -> None:
    head, rest = DOCS.read_text().split(BEGIN)
    expected = head + BEGIN + table() + END + rest.split(END)[1]
    if os.environ.get("ISRFLOW_REWRITE"):
        DOCS.write_text(expected)
    assert DOCS.read_text() == expected


def test_the_docs_tell_the_defaults() -> None:
    listed = dict(re.findall(r"^\| `([a-z.]+)` \((-?\d+)\) \| engine \|", DOCS.read_text(), re.MULTILINE))
    assert len(listed) == 3
    assert {name: str(getattr(Policy(), name.replace(".", "_"))) for name in listed} == listed
    assert "a gateway tries for two minutes" in DOCS.read_text()
    assert settings.Settings().bus_unreachable_max_ms == 120_000


def test_the_docs_list_every_version_of_kafka_with_its_level() -> None:
    listed = re.findall(r"^\| ([\d.]+) \| (\d+) \|", DOCS.read_text(), re.MULTILINE)
    levels = {number: METADATA_VERSIONS[version.release] for number, version in KAFKA_VERSIONS.items()}
    assert {number: int(level) for number, level in listed} == levels


@pytest.mark.parametrize("place", ["README.md", "docs/kafka.md", "docs/zookeeper.md", "cli/cluster/up.py"])
def test_no_text_names_a_version_that_is_not_run(place: str) -> None:
    named = re.findall(r"\b(?:3\.9|4\.\d)\.\d+\b", (ROOT / place).read_text())
    assert set(named) <= set(KAFKA_VERSIONS)


def test_the_docs_quote_the_codes_messages() -> None:
    code = "".join(Path(module.__file__ or "").read_text() for module in (comparison, directory))
    said = re.sub(r'"\s*\n\s*f?"', "", code)
    for words in (
        "brokers would lose what they have read. Is it the bus that this log was made from?",
        "and decisions after that were removed from the bus",
        "is in use by another gateway",
    ):
        assert words in said
        assert words in DOCS.read_text()
