"""List the versions of Kafka that isrflow does not run yet, and what they change for a controller.

    make kafka-current

The versions are those of the repository from which ``lock_jars.py`` takes jars. Messages are compared by the schemas in
Kafka's jars: requests on the controller's listener, their responses, and the records of the metadata log.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jgo.maven import MavenContext

from conf.jars import fetch
from conf.kafka_versions import KAFKA_VERSIONS, KafkaVersion
from tests.support.schemas import JARS_WITH_SCHEMAS, Shape, schemas_in, versions_of

GROUP = "org.apache.kafka"
_FINAL = re.compile(r"\d+\.\d+\.\d+")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        context = MavenContext(repo_cache=Path(folder))
        project = context.project(GROUP, "kafka-clients")
        project.update()
        found = list(newer(project.metadata.versions))
        for number, run in found:
            print(f"{number}: isrflow runs {run.number}")
            before = schemas_in(fetch(run.jars), run.number)
            paths = [context.project(GROUP, name).at_version(number).artifact().resolve() for name in JARS_WITH_SCHEMAS]
            changes = list(differences(before, schemas_in([Path(path) for path in paths], number)))
            print("".join(f"  {one}\n" for one in changes or ["nothing changes for a controller"]), end="")
    if not found:
        print("isrflow runs the newest version of each release that it knows, and there is no newer release")


def newer(numbers: Iterable[str]) -> Iterator[tuple[str, KafkaVersion]]:
    """Yield the newest version of each release that is newer than what is run, with the version to compare it with.

    That is the version of the same release, or of the newest release before it. Releases before the first one that is
    run are left out.
    """
    newest: dict[tuple[int, ...], tuple[int, ...]] = {}
    for parts in sorted(_parts(number) for number in numbers if _FINAL.fullmatch(number)):
        newest[parts[:2]] = parts
    run = {_parts(number)[:2]: version for number, version in KAFKA_VERSIONS.items()}
    for release, parts in newest.items():
        known = max((one for one in run if one <= release), default=None)
        if known is not None and parts > _parts(run[known].number):
            yield ".".join(map(str, parts)), run[known]


def _parts(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def differences(before: Mapping[str, Shape], after: Mapping[str, Shape]) -> Iterator[str]:
    """List what differs between two sets of schemas, in what a controller reads and writes."""
    names = sorted({*_of_a_controller(before), *_of_a_controller(after)})
    for name in names:
        if name not in before or name not in after:
            yield f"{name}: {'new' if name in after else 'gone'}"
            continue
        was, now = (versions_of(schemas[name]) for schemas in (before, after))
        if was.keys() != now.keys():
            yield f"{name}: versions {min(was)}-{max(was)} became {min(now)}-{max(now)}"
        changed = [version for version in was if version in now and was[version] != now[version]]
        if changed:
            yield f"{name}: other fields in versions {', '.join(map(str, changed))}"


def _of_a_controller(schemas: Mapping[str, Shape]) -> Iterator[str]:
    keys = {one["apiKey"] for one in schemas.values() if "controller" in one.get("listeners", ())}
    for name, one in schemas.items():
        is_message = one["type"] in ("request", "response") and one.get("apiKey") in keys
        if (is_message or one["type"] == "metadata") and versions_of(one):
            yield name


if __name__ == "__main__":
    main()
