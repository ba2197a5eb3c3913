"""No decision that people read shows a secret setting."""

from typing import Any

import pytest

from state.decisions import ConfigDecision, EntityDecision, Rejected, TopicDecision, decode, encode
from state.reason import Reason
from state.secrets import without_secrets

COMMON: dict[str, Any] = {"seq": 1, "controller_epoch": 1, "time_ms": 5}
WITHHELD = "(withheld, because it may hold a secret setting)"
SECRET = '{"ssl.key.password":"x","log.retention.ms":"1"}'


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (
            f'{{"kind":"alter_config","config":{SECRET}}}',
            '{"kind":"alter_config","config":{"ssl.key.password":"[hidden]","log.retention.ms":"1"}}',
        ),
        ('{"kind":"alter_config","config":["x"]}', WITHHELD),
        ('{"kind":"alter_config","config":{"ssl.key.pass', WITHHELD),
        (f'{{"kind":"alter_config","entity":"topic","config":{SECRET}}}', None),
        (f'{{"kind":"create_topic","topic":"alter_config","config":{SECRET}}}', None),
        ('{"kind":"alter_config","config":{"ssl.key.password":null}}', None),
        ('["alter_config"]', None),
        ('"alter_config"', None),
        ('{ "kind": "alter_config", "config": {} }', None),
    ],
)
def test_a_rejection_shows_no_secret_setting_and_else_what_was_rejected(raw: str, shown: str | None) -> None:
    rejected = encode(Rejected(**COMMON, reason=Reason.MALFORMED, raw=raw, field="", message=""))
    found = decode(without_secrets(rejected))
    assert isinstance(found, Rejected)
    assert found.raw == (raw if shown is None else shown)


@pytest.mark.parametrize(("entity", "shown"), [("cluster", "[hidden]"), ("broker", "[hidden]"), ("topic", "x")])
def test_secret_settings_of_brokers_are_hidden(entity: str, shown: str) -> None:
    config = {"ssl.key.password": "x", "log.retention.ms": "1"}
    changed: dict[str, Any] = {"reason": Reason.CONFIG_CHANGED, "entity": entity, "name": "1", "config": config}
    found = decode(without_secrets(encode(ConfigDecision(**COMMON, **changed, in_force=config))))
    assert isinstance(found, ConfigDecision)
    assert found.config == found.in_force == {"ssl.key.password": shown, "log.retention.ms": "1"}


def test_a_credential_is_hidden_and_what_only_has_its_name_is_not() -> None:
    told: dict[str, Any] = {"reason": Reason.ENTITY_CHANGED, "names": {"user": "a"}, "values": {"salt": "x"}}
    shown = [
        decode(without_secrets(encode(EntityDecision(**COMMON, entity_type=entity_type, **told))))
        for entity_type in ("scram_credential", "group")
    ]
    assert [one.values for one in shown if isinstance(one, EntityDecision)] == [{"salt": "[hidden]"}, {"salt": "x"}]
    named: dict[str, Any] = {"topic": "scram_credential", "topic_id": "id", "state": "created", "config": {}}
    topic = encode(TopicDecision(**COMMON, reason=Reason.TOPIC_CREATED, **named))
    assert without_secrets(topic) == topic
