"""Build what a release consists of, and check that all places that name the release agree.

    make release-check     in a clean tree, at the commit that is to be released

The next commit adds the release to releases.toml, with the commit that was checked, and begins the next version.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from state.level import NEWEST_LEVEL

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 900
A_VERSION = re.compile(r"\d+\.\d+\.\d+")


def problems(
    version: str, changelog: str, releases: list[dict[str, object]], level: int, changed: str
) -> Iterator[str]:
    """List what keeps this tree from being a release."""
    if not A_VERSION.fullmatch(version):
        yield f"pyproject.toml: version is {version}; a release is named MAJOR.MINOR.PATCH"
    if any(one["version"] == version for one in releases):
        yield f"releases.toml: {version} was released before"
    newest = re.search(r"^## (.*)$", changelog, re.MULTILINE)
    if newest is None or not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest[1]):
        found = newest[1] if newest else "missing"
        yield f"CHANGELOG.md: the first section is {found}; expected '{version} (YYYY-MM-DD)'"
    last = max((int(str(one["level"])) for one in releases), default=level)
    if level - last not in (0, 1):
        yield f"releases.toml: the last release has level {last}, and this tree {level}; expected at most one more"
    if changed:
        yield f"git: the tree is not clean:\n{changed}"


def build(directory: Path) -> list[Path]:
    """Build the sdist from what git has, and the wheel from the sdist. Return both."""
    code = "import sys; from setuptools import build_meta as b; getattr(b, 'build_' + sys.argv[1])(sys.argv[2])"
    sources = directory / "sources"
    _export("HEAD", sources)
    _run(sys.executable, "-c", code, "sdist", str(directory), cwd=sources)
    [sdist] = directory.glob("*.tar.gz")
    unpacked = directory / "unpacked"
    unpacked.mkdir()
    _run("tar", "-xzf", str(sdist), "-C", str(unpacked), "--strip-components=1")
    _run(sys.executable, "-c", code, "wheel", str(directory), cwd=unpacked)
    [wheel] = directory.glob("*.whl")
    return [sdist, wheel]


def run_demo(wheel: Path, directory: Path) -> None:
    """Run the demo from the wheel in an environment that has nothing but what the wheel asks for."""
    _run(sys.executable, "-m", "venv", str(directory / "venv"))
    pip = (str(directory / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet")
    _run(*pip, "install", f"isrflow[engine,java,kafka,zookeeper] @ {wheel.as_uri()}")
    _run(str(directory / "venv" / "bin" / "isrflow"), "demo", "--plain", cwd=directory)


def _export(commit: str, directory: Path) -> None:
    directory.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True, timeout=TIMEOUT_S)
    subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True, timeout=TIMEOUT_S)


def _run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Check, build into dist, and run the demo. Ends with 1 and all problems if there are any."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    releases = tomllib.loads((ROOT / "releases.toml").read_text()).get("release", [])
    changelog = (ROOT / "CHANGELOG.md").read_text()
    found = list(problems(version, changelog, releases, NEWEST_LEVEL, _run("git", "status", "--porcelain")))
    if found:
        raise SystemExit("\n".join(found))
    with tempfile.TemporaryDirectory() as scratch:
        built = build(Path(scratch))
        run_demo(built[1], Path(scratch))
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for one in built:
            print(shutil.copy(one, dist))
    print(f"{version} can be released, at {_run('git', 'rev-parse', 'HEAD').strip()}")


if __name__ == "__main__":
    main()
