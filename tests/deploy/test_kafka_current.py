"""Which versions of Kafka are news, and what they change for a controller."""

from typing import Any

from conf.jars import fetch
from conf.kafka_versions import KAFKA_VERSIONS
from deploy.kafka_current import differences, newer
from tests.support.schemas import Shape, schemas_in

REQUEST: dict[str, Any] = {
    "apiKey": 63,
    "type": "request",
    "listeners": ["controller"],
    "name": "BeatRequest",
    "validVersions": "0-1",
    "flexibleVersions": "0+",
    "fields": [{"name": "Id", "type": "int32", "versions": "0+"}],
}


def schemas(**changes: Any) -> dict[str, Shape]:
    return {"BeatRequest": REQUEST | changes}


def test_what_is_run_is_no_news_and_later_versions_are() -> None:
    assert list(newer(KAFKA_VERSIONS)) == []
    *_, (newest, version) = KAFKA_VERSIONS.items()
    release, _, fix = newest.rpartition(".")
    later, next_release = f"{release}.{int(fix) + 1}", "9.0.1"
    given = [*KAFKA_VERSIONS, "2.8.2", "4.0.0", f"{next_release}-rc1", "9.0.0", next_release, later]
    assert list(newer(given)) == [(later, version), (next_release, version)]


def test_a_change_of_each_kind_is_said() -> None:
    assert list(differences(schemas(), schemas())) == []
    assert list(differences({}, schemas())) == ["BeatRequest: new"]
    assert list(differences(schemas(), {})) == ["BeatRequest: gone"]
    raised = schemas(validVersions="0-2")
    assert list(differences(schemas(), raised)) == ["BeatRequest: versions 0-1 became 0-2"]
    field = {"name": "More", "type": "int8", "versions": "1+"}
    wider = schemas(fields=[*REQUEST["fields"], field])
    assert list(differences(schemas(), wider)) == ["BeatRequest: other fields in versions 1"]
    assert list(differences({}, schemas(listeners=["broker"]))) == []


def test_the_changes_from_4_2_to_4_3_are_found() -> None:
    of = {number[:3]: schemas_in(fetch(version.jars), number) for number, version in KAFKA_VERSIONS.items()}
    assert list(differences(of["4.2"], of["4.3"])) == [
        "BrokerHeartbeatRequest: versions 0-1 became 0-2",
        "BrokerHeartbeatResponse: versions 0-1 became 0-2",
        "BrokerRegistrationChangeRecord: versions 0-2 became 0-3",
        "RegisterBrokerRecord: versions 0-3 became 0-4",
    ]
