"""Without the extra ``zookeeper`` everything works but what needs its client, which says so in one line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_CLIENT = "import sys; sys.modules['kazoo'] = None; sys.argv[0] = 'isrflow'; from cli import main; main()"
GATEWAY = """
"node.id" = 100
"controller.quorum.voters" = "100@127.0.0.1:9093"
"cluster.id" = "AAAAAAAAAAAAAAAAAAAAAA"
"""
TIMEOUT_S = 120


def isrflow(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    shared = f'{GATEWAY}bus = "sqlite:{folder}/bus.db"'
    (folder / "kraft.toml").write_text(f'{shared}\n"metadata.log.dir" = "{folder}/log"\n')
    (folder / "zookeeper.toml").write_text(f'{shared}\n"zookeeper.connect" = "127.0.0.1:1"\n')
    command = [sys.executable, "-P", "-c", WITHOUT_CLIENT, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    "words",
    [
        ["gateway", "zookeeper", "--conf", "zookeeper.toml"],
        ["cluster", "up", "--kafka", "3.9.2", "--zookeeper", "--dir", "cluster"],
        ["doctor", "zookeeper.toml"],
    ],
    ids=" ".join,
)
def test_what_needs_the_client_of_zookeeper_names_the_extra(words: list[str], tmp_path: Path) -> None:
    done = isrflow(tmp_path, *words)
    assert done.returncode == 3, done.stderr
    assert re.fullmatch(r"Error: kazoo[.a-z]* is not installed: pip install 'isrflow\[zookeeper\]'\.\n", done.stderr)
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize("words", [["gateway", "kraft", "--help"], ["doctor", "kraft.toml"]], ids=" ".join)
def test_brokers_without_zookeeper_need_no_extra(words: list[str], tmp_path: Path) -> None:
    done = isrflow(tmp_path, *words)
    assert "kazoo" not in done.stdout + done.stderr
    assert "gateway" in done.stdout
