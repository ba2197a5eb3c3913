"""Signed jars of Spark are copied without their signatures, and nothing else in them changes."""

import zipfile
from pathlib import Path

import pytest

from streaming.unsigned_jars import unsigned_jars, write_unsigned_jars

MANIFEST = b"Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\nName: a/B.class\r\nSHA-256-Digest: x\r\n\r\n"


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A folder with a signed jar and one that is not signed."""
    jars = tmp_path / "jars"
    jars.mkdir()
    files = {"META-INF/MANIFEST.MF": MANIFEST, "META-INF/versions/9/a/B.class": b"9", "a/B.class": b"\0" * 1_000}
    signature = {"META-INF/DUMMY.SF": b"x", "META-INF/DUMMY.DSA": b"x"}
    for name, has in (("signed.jar", files | signature), ("plain.jar", files)):
        with zipfile.ZipFile(jars / name, "w") as jar:
            for file, body in has.items():
                jar.writestr(file, body)
    return jars


def test_a_signed_jar_is_copied_without_its_signature(jars: Path, tmp_path: Path) -> None:
    to = tmp_path / "unsigned"
    assert unsigned_jars(to) == []
    assert write_unsigned_jars(jars, to) == unsigned_jars(to) == [to / "signed.jar"]
    with zipfile.ZipFile(to / "signed.jar") as copy:
        assert {name: copy.read(name) for name in copy.namelist()} == {
            "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\nMulti-Release: true\n\n",
            "META-INF/versions/9/a/B.class": b"9",
            "a/B.class": b"\0" * 1_000,
        }


def test_former_copies_are_replaced_and_an_unfinished_one_is_not_used(jars: Path, tmp_path: Path) -> None:
    to = tmp_path / "unsigned"
    to.mkdir()
    (to / "former.jar").write_bytes(b"")
    assert write_unsigned_jars(jars, to) == [to / "signed.jar"]
    (to / "signed-123").write_bytes(b"half")
    assert unsigned_jars(to) == [to / "signed.jar"]
    write_unsigned_jars(jars, to)
    assert list(to.iterdir()) == [to / "signed.jar"]


def test_sparks_own_signed_jars_are_those_of_its_compiler(tmp_path: Path) -> None:
    names = [path.name.rpartition("-")[0] for path in write_unsigned_jars(directory=tmp_path)]
    assert names == ["commons-compiler", "janino"]
