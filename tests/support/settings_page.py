"""Every setting with its type, default and explanation, made from the types and from ``conf/reference.toml``."""

import re
from pathlib import Path

import msgspec

from conf.loader import as_text
from conf.settings import Settings
from conf.spark_settings import MASTER_EXPECTED, PREFIX
from state.policy import NAMES as POLICY_KEYS
from state.policy import TOPIC_NAMES, Policy
from tests.support.contract_tables import in_words

REFERENCE = Path(__file__).parents[2] / "conf" / "reference.toml"


def tables() -> str:
    """Describe all settings, section by section, in the order of the reference file."""
    fields = {f.encode_name: f for struct in (Policy, Settings) for f in msgspec.structs.fields(struct)}
    parts: list[str] = []
    for title, text in re.findall(r"^# --- (.*?) -+\n(.*?)(?=^# --- |\Z)", REFERENCE.read_text(), re.M | re.S):
        parts += ["", f"## {title}"]
        for comment, lines in re.findall(r"((?:^# .*\n)+)((?:^[a-z].*\n?)+)", text, re.MULTILINE):
            told = " ".join(line[2:] for line in comment.splitlines())
            for key in re.findall(r"^([\w.]+) = ", lines, re.MULTILINE):
                if key.startswith(PREFIX):
                    default = '""'
                    known = facts(key, MASTER_EXPECTED, default)
                else:
                    field = fields.pop(key)
                    default = as_text(field.default) if field.default != "" else '""'
                    known = facts(key, in_words(field.type), default)
                parts += ["", f"### `{key}`", "", told, "", known]
    assert set(fields) == {"policy", "spark"}, f"conf/reference.toml lacks {sorted(fields)}"
    return "\n".join(parts).lstrip("\n")


def facts(key: str, type_: str, default: str) -> str:
    """Describe in one line which values a setting takes and where it can be changed."""
    where = ""
    if key in TOPIC_NAMES:
        where = " `alter_config` changes it for the cluster or for one topic."
    elif key in POLICY_KEYS:
        where = " `alter_config` changes it."
    return f"Default `{default}`: {type_}.{where}"
