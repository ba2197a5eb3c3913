"""A mock broker's directory belongs to one process at a time, and to one broker id."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from brokers.mock.held_directory import DirectoryRefusedError, held, last_port, note_address
from brokers.mock.log.directory import LogDirectory

TIMEOUT_S = 120.0


def test_a_directory_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    with (
        held(directory, 1),
        pytest.raises(DirectoryRefusedError, match=r"/new is in use by another broker"),
        held(directory, 1),
    ):
        pass
    with held(directory, 1):
        pass


def test_a_directory_belongs_to_the_broker_that_first_used_it(tmp_path: Path) -> None:
    note_address(tmp_path, 1, "127.0.0.1", 9092)
    with pytest.raises(DirectoryRefusedError, match="holds the logs of broker 1, not of broker 2"), held(tmp_path, 2):
        pass
    # The refused one does not hold it.
    with held(tmp_path, 1):
        assert last_port(tmp_path) == 9092


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"broker": "1", "host": "h", "port": 9}', "\udc80"])
def test_a_file_with_the_address_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker.json").write_text(text, errors="surrogateescape")
    with held(tmp_path, 2):
        assert last_port(tmp_path) is None


def test_a_broker_that_is_refused_a_directory_leaves_it_alone(tmp_path: Path) -> None:
    LogDirectory(tmp_path / "1").mark_clean_shutdown(42)
    command = [sys.executable, "-m", "brokers.mock", "--broker", "1", "--bus", str(tmp_path / "none.db")]
    with held(tmp_path / "1", 1):
        ended = subprocess.run(
            [*command, "--dir", str(tmp_path / "1")], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    assert ended.returncode == 1
    assert "is in use by another broker" in ended.stdout + ended.stderr
    assert LogDirectory(tmp_path / "1").previous_broker_epoch == 42


def test_the_address_is_a_file_for_people_and_scripts(tmp_path: Path) -> None:
    note_address(tmp_path, 3, "::1", 1)
    text = (tmp_path / "broker.json").read_text()
    assert text.endswith("}\n")
    assert json.loads(text) == {"broker": 3, "host": "::1", "port": 1}
