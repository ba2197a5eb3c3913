"""Every setting with its type, default and explanation, made from the types and from the reference documents."""

import re
from pathlib import Path

import msgspec

from brokers.gateways.kraft.settings import Settings as KraftSettings
from brokers.gateways.zk.settings import Settings as ZookeeperSettings
from conf.layers import as_text
from conf.settings import Settings
from conf.spark_settings import MASTER_EXPECTED, PREFIX
from state.policy import NAMES as POLICY_KEYS
from state.policy import TOPIC_NAMES, Policy
from tests.support.contract_tables import in_words

# Settings of gateways that mean what the engine's of the same name do, with the same default. They are explained once.
AS_THE_ENGINE = (
    "kafka.client.config",
    "broker.heartbeat.interval.ms",
    "metrics.ssl.keystore.location",
    "metrics.token.file",
    "log.format",
    "log.level",
    "super.users",
    "authorizer.class.name",
    "allow.everyone.if.no.acl.found",
)
REFERENCE = Path(__file__).parents[2] / "conf" / "reference.toml"
GATEWAY_REFERENCE = REFERENCE.with_name("gateway-reference.toml")


def of_engine() -> str:
    """Describe all settings of the engine, section by section, in the order of the reference file."""
    text, left = _tables(REFERENCE, Policy, Settings)
    assert left == {"policy", "spark"}, f"{REFERENCE} lacks {sorted(left)}"
    return text


def of_gateways() -> str:
    """Describe all settings of gateways in the same way."""
    text, left = _tables(GATEWAY_REFERENCE, KraftSettings, ZookeeperSettings)
    assert not left, f"{GATEWAY_REFERENCE} lacks {sorted(left)}"
    ours, theirs = (
        {field.encode_name: field.default for struct in structs for field in msgspec.structs.fields(struct)}
        for structs in ((Policy, Settings), (ZookeeperSettings, KraftSettings))
    )
    assert {key: theirs[key] for key in AS_THE_ENGINE} == {key: ours[key] for key in AS_THE_ENGINE}
    return f"As the engine, gateways have {', '.join(f'`{key}`' for key in AS_THE_ENGINE)}.\n\n{text}"


def _tables(reference: Path, *structs: type[msgspec.Struct]) -> tuple[str, set[str]]:
    fields = {f.encode_name: f for struct in structs for f in msgspec.structs.fields(struct)}
    is_engines = Policy in structs
    parts: list[str] = []
    for title, text in re.findall(r"^# --- (.*?) -+\n(.*?)(?=^# --- |\Z)", reference.read_text(), re.M | re.S):
        parts += ["", f"## {title}"]
        for comment, lines in re.findall(r'((?:^# .*\n)+)((?:^["a-z].*\n?)+)', text, re.MULTILINE):
            told = " ".join(line[2:] for line in comment.splitlines())
            known: dict[str, str] = {}
            for key in re.findall(r'^"?([\w.]+)"? = ', lines, re.MULTILINE):
                if key.startswith(PREFIX):
                    known[key] = facts(key, MASTER_EXPECTED, '""')
                else:
                    field = fields.pop(key)
                    default = as_text(field.default) if field.default != "" else '""'
                    known[key] = facts(key, in_words(field.type), default, is_engines=is_engines)
            if not is_engines and known.keys() <= set(AS_THE_ENGINE):
                continue
            # Settings that one comment explains share a heading.
            parts += ["", f"### {', '.join(f'`{key}`' for key in known)}", "", told, "", "\n".join(known.values())]
    return "\n".join(parts).lstrip("\n"), set(fields)


def facts(key: str, type_: str, default: str, *, is_engines: bool = True) -> str:
    """Describe in one line which values a setting takes and where it can be changed."""
    where = ""
    if is_engines and key in TOPIC_NAMES:
        where = " Dynamic, also by topic."
    elif is_engines and key in POLICY_KEYS:
        where = " Dynamic."
    return f"Default `{default}`: {type_}.{where}"
