"""Jars enter the cache only with the right hash, and are found again without a network."""

import hashlib
import re
from pathlib import Path

import pytest

from conf import jars as under_test
from conf.jars import SETS, Jar, JarsError, damaged, fetch, jars, missing, pinned
from conf.kafka_versions import KAFKA_VERSIONS
from state.features import METADATA_VERSIONS


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ISRFLOW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A local Maven repository with the only jar of the set ``sample``."""
    folder = tmp_path / "m2"
    place = folder / "org" / "sample" / "thing" / "1.0" / "thing-1.0.jar"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"a jar")
    monkeypatch.setenv("M2_REPO", str(folder))
    pin(monkeypatch, b"a jar")
    return place


def pin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    coordinate = "org.sample:thing:1.0"
    lock = under_test.Lock({"sample": [coordinate]}, {coordinate: hashlib.sha256(content).hexdigest()})
    monkeypatch.setattr(under_test, "read_lock", lambda: lock)


def test_the_lock_pins_every_jar_of_every_set() -> None:
    for name in SETS:
        listed = pinned(name)
        assert len({(jar.group, jar.artifact) for jar in listed}) == len(listed) > 0, "one version of each"
        assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in listed)
    assert {"kafka_2.13", "kafka-metadata", "slf4j-reload4j"} <= {jar.artifact for jar in pinned("kafka-broker")}


def test_each_version_of_kafka_has_its_own_jars_in_the_lock() -> None:
    for version in KAFKA_VERSIONS.values():
        of_kafka = [jar for jar in pinned(version.jars) if jar.group == "org.apache.kafka"]
        assert {jar.version for jar in of_kafka} == {version.number}
        assert METADATA_VERSIONS[version.release] > 0
    assert len({version.jars for version in KAFKA_VERSIONS.values()}) == len(KAFKA_VERSIONS)


def test_a_jar_that_two_sets_have_is_fetched_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = under_test.read_lock()
    sets = {**lock.sets, "other": lock.sets["sample"]}
    monkeypatch.setattr(under_test, "read_lock", lambda: under_test.Lock(sets, lock.sha256))
    paths = fetch("sample")
    repository.unlink()
    assert fetch("other") == paths


def test_the_error_for_missing_jars_says_how_to_get_them() -> None:
    with pytest.raises(JarsError, match="1 jar of spark-files is missing: run 'isrflow doctor --fetch spark-files'"):
        jars("spark-files")
    with pytest.raises(JarsError, match="no set of jars called 'kafka'; the sets are kafka-broker, "):
        jars("kafka")


def test_a_part_that_a_killed_process_has_fetched_goes_with_the_next_fetch(repository: Path) -> None:
    [jar] = pinned("sample")
    left = jar.path.parent / "job-killed"
    left.mkdir(parents=True)
    (left / "jar").write_bytes(b"a ja")
    assert fetch("sample") == [jar.path]
    assert list(jar.path.parent.iterdir()) == [jar.path]


def test_a_fetched_jar_is_found_again(repository: Path) -> None:
    told: list[Jar] = []
    assert [jar.artifact for jar in missing("sample")] == ["thing"]
    paths = fetch("sample", told.append)
    assert [path.read_bytes() for path in paths] == [b"a jar"]
    assert [path.name for path in paths[0].parent.iterdir()] == ["thing-1.0.jar"]
    assert [jar.coordinate for jar in told] == ["org.sample:thing:1.0"]
    repository.unlink()
    assert fetch("sample", told.append) == jars("sample") == paths
    assert len(told) == 1


def test_a_jar_with_the_wrong_hash_never_enters_the_cache(repository: Path) -> None:
    repository.write_bytes(b"another jar")
    with pytest.raises(JarsError, match=r"org\.sample:thing:1\.0 has the wrong hash: its sha256 is "):
        fetch("sample")
    assert missing("sample") != []


def test_a_damaged_jar_is_fetched_again(repository: Path) -> None:
    (path,) = fetch("sample")
    path.write_bytes(b"half a j")
    assert [jar.artifact for jar in damaged("sample")] == ["thing"]
    assert fetch("sample") == [path]
    assert path.read_bytes() == b"a jar"
    assert damaged("sample") == []
