"""Two releases, each installed in an environment of its own: the last one, and one that supports a higher level."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from deploy.release_check import export
from state.level import NEWEST_LEVEL
from tests.support.rooms import ROOMS
from tests.support.wheel import ROOT, libraries_alone

INSTALL_TIMEOUT_S = 300
LOCK = "deploy/requirements.lock"


class Release(NamedTuple):
    """What runs an installed release: its commands, and its Python, which finds no other isrflow."""

    name: str
    isrflow: str
    python: tuple[str, ...]


def last_release(directory: Path) -> Release:
    """Install the last release of releases.toml; before there is one, the commit of this tree."""
    releases = tomllib.loads((ROOT / "releases.toml").read_text()).get("release", [])
    sources = directory / "last"
    export(releases[-1]["commit"] if releases else "HEAD", sources)
    return _installed("last", sources, directory)


def next_release(directory: Path) -> Release:
    """Install this tree with one more level."""
    sources = directory / "next"
    sources.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    for room in ROOMS:
        shutil.copytree(ROOT / room, sources / room, ignore=shutil.ignore_patterns("__pycache__"))
    level = sources / "state" / "level.py"
    text, line = level.read_text(), f"\nNEWEST_LEVEL = {NEWEST_LEVEL}\n"
    assert text.count(line) == 1
    level.write_text(text.replace(line, f"\nNEWEST_LEVEL = {NEWEST_LEVEL + 1}\n"))
    return _installed("next", sources, directory)


def _installed(name: str, sources: Path, directory: Path) -> Release:
    environment = directory / f"environment-{name}"
    lock = sources / LOCK
    if not lock.exists() or lock.read_bytes() == (ROOT / LOCK).read_bytes():
        libraries_alone(environment)
        # Spark starts faster with these, which setup has made for the libraries that the environments share.
        (environment / "share").symlink_to(Path(sys.prefix) / "share")
    else:
        _run("venv", environment)
        _pip(environment, "--require-hashes", "--requirement", lock)
    _pip(environment, "--no-deps", "--no-index", "--no-build-isolation", sources)
    python = str(environment / "bin" / "python")
    return Release(name, str(environment / "bin" / "isrflow"), (python, "-P"))


def _pip(environment: Path, *arguments: object) -> None:
    python = environment / "bin" / "python"
    _run("pip", "--disable-pip-version-check", "--quiet", "--python", python, "install", *arguments)


def _run(module: str, *arguments: object) -> None:
    subprocess.run([sys.executable, "-m", module, *map(str, arguments)], check=True, timeout=INSTALL_TIMEOUT_S)
