"""Write conf/jars.lock.toml: resolve the roots below, and pin every jar that they need by its hash."""

import hashlib
import tempfile
from pathlib import Path

from jgo.maven import MavenContext

from conf.jars import LOCK_NAME, SETS
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION

PLACE = Path(__file__).parents[1] / "conf" / LOCK_NAME
# Matches the slf4j that Kafka ships. Without a binding its brokers log nothing.
LOG_BINDING = "org.slf4j:slf4j-reload4j:1.7.36"
# The version of Kafka that has a ZooKeeper mode brings ZooKeeper, and what its server needs.
WITH_DEPENDENCIES = {
    **{kafka.jars: [f"org.apache.kafka:kafka_2.13:{number}", LOG_BINDING] for number, kafka in KAFKA_VERSIONS.items()},
    **{
        KAFKA_VERSIONS[number].tools: [f"org.apache.kafka:kafka-tools:{number}", LOG_BINDING]
        for number in (KAFKA_VERSION, ZOOKEEPER_KAFKA_VERSION)
    },
}
BY_NAME = {
    # Depends only on Hadoop's client, which Spark ships.
    "spark-files": ["com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"],
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        context = MavenContext(repo_cache=Path(folder))
        sets = {name: _resolved(context, roots) for name, roots in WITH_DEPENDENCIES.items()} | BY_NAME
        wanted = sorted({coordinate for coordinates in sets.values() for coordinate in coordinates})
        hashes = {coordinate: _sha256(context, coordinate) for coordinate in wanted}
    lines = ["# Written by 'make lock' from deploy/lock_jars.py.", "", "[sets]"]
    for name in SETS:
        # Quoted, because a bare key of TOML has no dot.
        lines += [f'"{name}" = [', *(f'    "{coordinate}",' for coordinate in sets[name]), "]"]
    lines += ["", "[sha256]", *(f'"{coordinate}" = "{sha256}"' for coordinate, sha256 in hashes.items())]
    PLACE.write_text("\n".join(lines) + "\n")
    print(f"{PLACE}: {len(hashes)} jars in {len(sets)} sets")


def _resolved(context: MavenContext, roots: list[str]) -> list[str]:
    """List the roots and everything that they need at run time, without repeats."""
    inputs, others = context.resolver.resolve([context.create_dependency(root) for root in roots])
    found = [f"{d.groupId}:{d.artifactId}:{d.version}" for d in [*inputs, *others] if d.scope != "test"]
    return list(dict.fromkeys(found))


def _sha256(context: MavenContext, coordinate: str) -> str:
    group, artifact, version = coordinate.split(":")
    path = context.project(group, artifact).at_version(version).artifact().resolve()
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
