"""Install isrflow as users do: from its wheel, into an environment without this source tree."""

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 120


def export_archive(directory: Path) -> Path:
    """Write the archive of a commit of the present tree, and return it. The repository stays unchanged."""
    git_directory = _git({}, "rev-parse", "--path-format=absolute", "--git-common-dir")
    index_and_objects = {
        "GIT_INDEX_FILE": str(directory / "index"),
        "GIT_OBJECT_DIRECTORY": str(directory / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(Path(git_directory) / "objects"),
    }
    (directory / "objects").mkdir()
    _git(index_and_objects, "add", "--all")
    archive = directory / "isrflow.zip"
    _git(index_and_objects, "archive", f"--output={archive}", _git(index_and_objects, "write-tree"))
    return archive


def build_wheel(directory: Path, archive: Path | None = None) -> Path:
    """Build the wheel from an archive, or from a copy of the sources, because setuptools leaves files beside them."""
    sources = directory / "sources"
    sources.mkdir()
    if archive is None:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, sources)
        for room in ROOMS:
            shutil.copytree(ROOT / room, sources / room, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        with ZipFile(archive) as packed:
            packed.extractall(sources)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(sources))
    [wheel] = directory.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, directory: Path, extras: tuple[str, ...] = ("engine", "java")) -> Path:
    """Install ``wheel`` into a new environment and return its ``isrflow``.

    It has only those of this environment's libraries that the wheel requires, with ``extras``.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True, timeout=BUILD_TIMEOUT_S)
    _pip("--python", str(directory / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    [packages] = (directory / "lib").glob("python*/site-packages")
    [metadata] = packages.glob("isrflow-*.dist-info")
    own = Distribution.at(metadata)
    for required in _required(own.requires or [], set(extras), own):
        for name in {file.parts[0] for file in required.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (packages / name).symlink_to(required.locate_file(name))
    return directory / "bin" / "isrflow"


def libraries_alone(directory: Path) -> Path:
    """Make a new environment that shares this one's libraries, without isrflow; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True, timeout=BUILD_TIMEOUT_S)
    # Python reads no .pth files in a directory that a .pth file added, so this tree's editable install stays out.
    [packages] = (directory / "lib").glob("python*/site-packages")
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return directory / "bin" / "python"


def _required(lines: Iterable[str], extras: set[str], own: Distribution) -> list[Distribution]:
    """Return the installed distributions that requirements ask for, directly or through others."""
    found: dict[str, Distribution] = {}
    waiting = [(line, extras) for line in lines]
    while waiting:
        line, wanted_extras = waiting.pop()
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if requirement.marker and not any(requirement.marker.evaluate({"extra": one}) for one in wanted_extras or {""}):
            continue
        if name == "isrflow":
            waiting += [(inner, set(requirement.extras)) for inner in own.requires or ()]
        elif name not in found:
            found[name] = distribution(name)
            waiting += [(inner, set(requirement.extras)) for inner in found[name].requires or ()]
    return list(found.values())


def _git(environment: dict[str, str], *arguments: str) -> str:
    command, environment = ["git", *arguments], os.environ | environment
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", *arguments]
    subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S)
