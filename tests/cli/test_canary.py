"""A password of the bus and a token of the metrics are in no output of a command."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import bus.kafka.connection as connection
import bus.kafka.topics as topics
import isrflow.kafka.log as log
from bus.embedded import EmbeddedBus
from cli.commands import command
from isrflow.kafka.client_config import VARIABLE

CANARY = "canary-of-all-outputs"
# Nobody listens there.
NOWHERE = "kafka://127.0.0.1:1/none"
COMMANDS = (
    ("describe", "--format", "json"),
    ("health", "--format", "json"),
    ("history",),
    ("decisions",),
    ("events",),
    ("state", "tree"),
    ("topics", "list"),
    ("doctor", "spark-files", "--format", "json"),
)


@pytest.fixture(autouse=True)
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=me\nsasl.password={CANARY}\n"
    )
    monkeypatch.setenv(VARIABLE, str(file))
    monkeypatch.setenv("ISRFLOW_METRICS_TOKEN", CANARY)
    for module in (connection, topics, log):
        monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 0.2)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_no_command_shows_a_secret(tmp_path: Path, words: tuple[str, ...]) -> None:
    EmbeddedBus(tmp_path / "bus.db").close()
    for place in (NOWHERE, str(tmp_path / "bus.db")):
        result = CliRunner().invoke(command, [*words, "--bus", place])
        assert CANARY not in result.output + repr(result.exception)
        # The errors are those of the bus, so the clients were made with the password.
        assert place != NOWHERE or words[0] == "doctor" or result.exit_code in (2, 3), result.output
