"""Install isrflow as users do: from its wheel, into an environment without this source tree."""

import shutil
import site
import subprocess
import sys
from pathlib import Path

from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 120


def build_wheel(directory: Path) -> Path:
    """Build the wheel from a copy of the sources, because setuptools leaves files beside them."""
    sources = directory / "sources"
    sources.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    for room in ROOMS:
        shutil.copytree(ROOT / room, sources / room, ignore=shutil.ignore_patterns("__pycache__"))
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(sources))
    [wheel] = directory.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, directory: Path) -> Path:
    """Install ``wheel`` into a new environment that shares this one's libraries; return its ``isrflow``."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True, timeout=BUILD_TIMEOUT_S)
    _pip("--python", str(directory / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    # Python reads no .pth files in a directory that a .pth file added, so this tree's editable install stays out.
    [packages] = (directory / "lib").glob("python*/site-packages")
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return directory / "bin" / "isrflow"


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", *arguments]
    subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S)
