"""Installed without extras, isrflow has no Spark, no Java and no client of Kafka, and is still useful."""

import os
import re
import subprocess
import sys
from pathlib import Path
from stat import S_ISLNK
from zipfile import ZipFile

import pytest

from tests.support.doc_blocks import blocks_of
from tests.support.rooms import ROOMS
from tests.support.waiting import TIMEOUT_S
from tests.support.wheel import ROOT, build_wheel, export_archive, install_wheel
from tests.tidy.test_tidy import name_of, python_files

LEFT_OUT = {"pyspark", "pandas", "pyarrow", "numpy", "kafka", "confluent_kafka", "prometheus_client", "google", "jgo"}
BYTES_MAX = 30 * 1024 * 1024


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The archive of a commit of this tree; None if this tree comes from an archive itself."""
    return export_archive(tmp_path_factory.mktemp("archive")) if (ROOT / ".git").exists() else None


@pytest.fixture(scope="module")
def wheel(archive: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), archive)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment with the wheel and what it requires without extras."""
    return install_wheel(wheel, tmp_path_factory.mktemp("bare") / "venv", extras=()).parent


def run(bare: Path, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{bare}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
    )


def test_an_exported_archive_has_no_link_and_its_wheel_has_every_module(archive: Path | None, wheel: Path) -> None:
    if archive is not None:
        with ZipFile(archive) as exported:
            # Python's zipfile unpacks a link as a file with the name of the link's target.
            assert [entry.filename for entry in exported.infolist() if S_ISLNK(entry.external_attr >> 16)] == []
    with ZipFile(wheel) as built:
        assert [name for path in python_files(*ROOMS) if (name := name_of(path)) not in built.namelist()] == []


def test_a_bare_install_is_small(bare: Path) -> None:
    [packages] = (bare.parent / "lib").glob("python*/site-packages")
    assert {path.name for path in packages.iterdir()} & LEFT_OUT == set()
    # Each library is a link, so the link's target counts.
    files = (file for entry in packages.iterdir() for file in [entry, *entry.resolve().rglob("*")])
    assert sum(file.stat().st_size for file in files if file.is_file()) < BYTES_MAX


def test_commands_that_need_no_engine_work(bare: Path, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(bare.parent)
    done = run(bare, "\n".join(["set -eu", *blocks_of("README.md", "bash")]), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "decisions.jsonl").read_text().count('"kind":"leader_and_isr"') == 2


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("isrflow run", "isrflow[engine]"),
        ("isrflow demo --plain", "isrflow[engine]"),
        ("isrflow cluster up --brokers 3", "isrflow[engine]"),
        ("isrflow publish - --bus kafka://127.0.0.1:1 </dev/null", "isrflow[kafka]"),
    ],
)
def test_a_command_that_lacks_something_says_what_to_install(
    bare: Path, command: str, missing: str, tmp_path: Path
) -> None:
    done = run(bare, command, tmp_path)
    assert done.returncode == 3, done.stderr
    assert re.fullmatch(rf"Error: \w+ is not installed: pip install '{re.escape(missing)}'\.\n", done.stderr)


def test_the_list_of_commands_needs_no_extra(bare: Path, tmp_path: Path) -> None:
    done = run(bare, "isrflow --help && isrflow schema events && isrflow doctor --help", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Not installed" not in done.stdout


def test_a_bus_on_kafka_names_the_extra_that_it_needs(bare: Path, tmp_path: Path) -> None:
    done = run(bare, "python -c 'import isrflow; isrflow.connect(\"kafka://127.0.0.1:1\")'", tmp_path)
    assert "kafka is not installed: pip install 'isrflow[kafka]'" in done.stderr


def test_the_type_checker_of_a_users_program_knows_the_package(bare: Path, tmp_path: Path) -> None:
    program = "import isrflow\nwith isrflow.connect('bus.db') as bus:\n    bus.ask(5)\n"
    options = ["--python-executable", str(bare / "python"), "--cache-dir", str(tmp_path / "cache"), "--strict"]
    command = [sys.executable, "-m", "mypy", *options, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.stdout.startswith('<string>:3: error: Argument 1 to "ask" of "Client" has incompatible type "int"')
    assert "Found 1 error" in done.stdout
