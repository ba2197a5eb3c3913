"""The house rules that a machine can check."""

import ast
import re
import subprocess
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[2]
LINES_MAX = 300
FUNCTION_LINES_MAX = 50
DOCUMENT_WORDS_MAX = 50_000
# Longer on purpose, each with its reason.
LONG_FILES: dict[str, str] = {}


@cache
def tracked() -> tuple[Path, ...]:
    if not (ROOT / ".git").exists():
        # In an exported archive: its own files, without those that set-up and tests have made since.
        made = {".venv", ".hypothesis", "build", "dist", "data", "__pycache__"}
        paths = (path for path in ROOT.rglob("*") if not made & set(path.relative_to(ROOT).parts))
        return tuple(path for path in paths if path.is_file() and not re.search(r"(_cache|egg-info)/", str(path)))
    return tuple(path for name in listed(ROOT) if (path := ROOT / name).is_file())


def listed(root: Path, *options: str) -> list[str]:
    """Return what ``git ls-files`` lists of the repository at ``root``."""
    command = ["git", "ls-files", "-z", *options]
    text = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return text.removesuffix("\0").split("\0") if text else []


def links_in(root: Path) -> list[str]:
    """Return the links that git tracks, also those that the checkout shows as a folder or as a file."""
    entries = [entry.split("\t", 1) for entry in listed(root, "--stage")]
    return [name for facts, name in entries if facts.startswith("120000 ")]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_files(*rooms: str) -> list[Path]:
    wanted = rooms or (*ROOMS, "tests", "bench", "deploy")
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in wanted]


def text_files() -> list[tuple[str, str]]:
    return [(name_of(path), path.read_text(encoding="utf-8", errors="replace")) for path in tracked()]


def test_files_are_short() -> None:
    counts = {name_of(path): len(path.read_text().splitlines()) for path in python_files()}
    assert {name: count for name, count in counts.items() if count > LINES_MAX and name not in LONG_FILES} == {}
    assert [name for name in LONG_FILES if counts.get(name, 0) <= LINES_MAX] == [], "on the list without need"


def test_functions_fit_a_screen() -> None:
    long = {}
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > FUNCTION_LINES_MAX:
                    long[f"{name_of(path)}:{node.lineno} {node.name}"] = count
    assert long == {}


def test_modules_are_named_for_what_they_hold() -> None:
    vague = re.compile(r"(^|_)(manager|helper|helpers|util|utils|misc|common)(_|$)")
    parts = {part for path in python_files() for part in path.relative_to(ROOT).with_suffix("").parts}
    assert [part for part in sorted(parts) if vague.search(part)] == []


def test_no_link_is_tracked() -> None:
    has_git = (ROOT / ".git").exists()
    assert (links_in(ROOT) if has_git else [name_of(path) for path in tracked() if path.is_symlink()]) == []


def test_a_link_to_a_folder_is_found_however_it_is_checked_out(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "link").symlink_to("folder")
    git("init")
    git("add", "--all")
    assert links_in(tmp_path) == ["link"]
    (tmp_path / "link").unlink()
    git("-c", "core.symlinks=false", "checkout", "--", "link")
    assert (tmp_path / "link").read_text() == "folder"
    assert links_in(tmp_path) == ["link"]


def test_no_other_installed_package_has_a_name_of_ours() -> None:
    owners = packages_distributions()
    # An environment that was set up before a room came does not know the room yet.
    assert {room: owners.get(room, ["isrflow"]) for room in ROOMS} == {room: ["isrflow"] for room in ROOMS}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(p) for p in python_files() if p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert silent == []


@pytest.mark.parametrize("path", python_files("state", "controller_logic"), ids=name_of)
def test_rules_know_no_carrier_and_no_clock(path: Path) -> None:
    text = path.read_text()
    assert "pyspark" not in text
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported & {"time", "datetime", "random", "secrets", "uuid", "os", "socket", "logging", "structlog"} == set()


def test_the_rules_have_a_map() -> None:
    map_ = ast.get_docstring(ast.parse((ROOT / "controller_logic" / "__init__.py").read_text())) or ""
    names = {path.stem for path in python_files("controller_logic")} - {"__init__"}
    assert [name for name in sorted(names) if f"``{name}``" not in map_] == []


def test_the_readme_maps_every_folder() -> None:
    readme = (ROOT / "README.md").read_text()
    folders = {path.relative_to(ROOT).parts[0] for path in tracked() if len(path.relative_to(ROOT).parts) > 1}
    shown = {folder for folder in folders if not folder.startswith(".")}
    assert [folder for folder in sorted(shown) if f"`{folder}/`" not in readme] == []
    assert set(ROOMS) <= shown


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in tracked():
        if path.suffix == ".md":
            links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text())
            broken += [f"{name_of(path)}: {link}" for link in links if not (path.parent / link).exists()]
    assert broken == []


def test_documents_are_short() -> None:
    counts = {name_of(path): len(path.read_text().split()) for path in tracked() if path.suffix == ".md"}
    assert sum(counts.values()) <= DOCUMENT_WORDS_MAX, sorted(counts.items(), key=lambda one: -one[1])[:10]


def test_files_that_documents_name_are_there() -> None:
    named = re.compile(rf"`((?:{'|'.join(ROOMS)}|tests|deploy|docs)/[\w/.-]+\.(?:py|md|toml|sh))[:`]")
    there = {name_of(path) for path in tracked()}
    gone = {
        name_of(path): found
        for path in tracked()
        if path.suffix == ".md" and (found := sorted(set(named.findall(path.read_text())) - there))
    }
    assert gone == {}


def test_documents_install_the_wheel_with_the_packages_that_it_needs_there() -> None:
    installed = [
        text
        for path in (ROOT / "docs").glob("*.md")
        for text in re.findall(r"pip install [^\n`]*\.whl[^\n`]*", path.read_text())
    ]
    assert installed
    assert [text for text in installed if ".whl[" not in text] == []


def test_every_feature_that_works_names_tests_that_are_there() -> None:
    folders = {".py": ROOT / "tests" / "controller_logic", ".txt": ROOT / "tests" / "scenarios"}
    lines = (ROOT / "docs" / "features.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| feature |")]
    assert len(rows) > 40
    for row in rows:
        _, _, state, shown_by = (cell.strip() for cell in row[1:-1].split("|"))
        named = re.findall(r"`([a-z0-9_/]+(\.py|\.txt))`", shown_by)
        assert named or state.startswith("not "), row
        assert [path for path, end in named if not {ROOT / path, folders[end] / path} & set(tracked())] == [], row


def test_no_machine_and_no_registry_is_named() -> None:
    # Joined from pieces, so that this file does not name them itself.
    names = ["pypi" + ".org", "pythonhosted" + ".org", "index" + "-url", "/" + "work/", "/" + "root/", "/home" + "/"]
    hosts = re.compile("|".join([*map(re.escape, names), r"repo1?\.maven\." + r"(org|apache)", "maven2" + "/"]))
    found = {
        name: sorted({match.group() for match in hosts.finditer(text)})
        for name, text in text_files()
        # Only the flags that keep an index out of the lock mention one.
        if name != "Makefile" and hosts.search(text)
    }
    assert found == {}


def test_the_lock_pins_every_requirement_by_hash() -> None:
    lock = (ROOT / "deploy" / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line for line in lock.splitlines() if line.strip()]
    assert [line[:60] for line in lines if "==" not in line or "--hash=sha256:" not in line] == []


def test_the_makefile_is_short() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.MULTILINE)
    phony = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split()
    assert len(targets) <= 13
    assert sorted(targets) == sorted(phony)
    assert (ROOT / ".ci" / "run").read_text().count("make test") == 1


def test_no_mark_of_a_conflict_is_left() -> None:
    marks = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert [name for name, text in text_files() if marks.search(text)] == []


def test_nothing_unfinished_is_left() -> None:
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
    assert [name for name, text in text_files() if name.endswith((".py", ".md", ".toml")) and marks.search(text)] == []
