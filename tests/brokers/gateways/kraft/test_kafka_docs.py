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


# By who answers: whether only the gateway that leads does, and whether a broker forwards the request for a client.
KINDS = {
    (False, False): "every gateway",
    (True, False): "the gateway that leads",
    (True, True): "the gateway that leads, also to clients through a broker",
}


def table() -> str:
    requests = (layout for layout in layouts().values() if layout.kind == "request")
    names = {layout.api_key: layout.name.removesuffix("Request") for layout in requests}
    served: dict[tuple[bool, bool], list[str]] = {kind: [] for kind in KINDS}
    for key, api in sorted(APIS.items()):
        versions = f"{api.min_version}-{api.max_version}" if api.max_version > api.min_version else api.max_version
        served[api.is_leaders, api.is_forwarded].append(f"{names[key]} {versions}")
    return "".join(f"* {KINDS[kind]}: {', '.join(apis)}.\n" for kind, apis in served.items())


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
