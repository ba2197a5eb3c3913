"""Two releases, each installed in an environment of its own: the last one, and one that supports a higher level."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from state.level import NEWEST_LEVEL
from tests.support.wheel import ROOT, build_wheel, libraries_alone

INSTALL_TIMEOUT_S = 300
LOCK = "deploy/requirements.lock"
_RELEASES = tomllib.loads((ROOT / "releases.toml").read_text())["release"]
LAST_LEVEL = int(_RELEASES[-1]["level"])
NEXT_LEVEL = LAST_LEVEL + 1


class Release(NamedTuple):
    """An installed release: its command, and its Python, which finds no other isrflow."""

    name: str
    isrflow: str
    python: tuple[str, ...]

    @property
    def has_gateway_command(self) -> bool:
        """Whether gateways are started by ``isrflow gateway``. In 0.1.0 they were modules."""
        return any(Path(self.isrflow).parents[1].glob("lib/python*/site-packages/cli/gateway"))


def last_release(directory: Path) -> Release:
    """Install the last release of releases.toml."""
    return _installed(directory / "last", last_sources(directory / "last.zip"))


def last_sources(archive: Path) -> Path:
    """Write the sources of the last release into an archive, of the kind that its name says."""
    commit = _RELEASES[-1]["commit"]
    subprocess.run(["git", "archive", f"--output={archive}", commit], cwd=ROOT, check=True, timeout=INSTALL_TIMEOUT_S)
    return archive


def next_release(directory: Path) -> Release:
    """Install this tree. If it supports no level more than the last release, add one."""
    release = _installed(directory / "next")
    [level] = (directory / "next" / "environment" / "lib").glob("python*/site-packages/state/level.py")
    text, line = level.read_text(), f"\nNEWEST_LEVEL = {NEWEST_LEVEL}\n"
    assert text.count(line) == 1
    level.write_text(text.replace(line, f"\nNEWEST_LEVEL = {NEXT_LEVEL}\n"))
    return release


def _installed(directory: Path, archive: Path | None = None) -> Release:
    directory.mkdir()
    wheel, environment, lock = build_wheel(directory, archive), directory / "environment", directory / "sources" / LOCK
    python = str(environment / "bin" / "python")
    if not lock.exists() or lock.read_bytes() == (ROOT / LOCK).read_bytes():
        libraries_alone(environment)
        # Spark starts faster with these, which setup has made for the libraries that the environments share.
        (environment / "share").symlink_to(Path(sys.prefix) / "share")
    else:
        _run("venv", str(environment))
        _run("pip", "--quiet", "--python", python, "install", "--require-hashes", "--requirement", str(lock))
    _run("pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index", str(wheel))
    return Release(directory.name, str(environment / "bin" / "isrflow"), (python, "-P"))


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, timeout=INSTALL_TIMEOUT_S)
