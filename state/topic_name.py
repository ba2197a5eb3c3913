"""The names that topics may have (Kafka's ``Topic.validate``)."""

import re

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def has_length_of_a_topic(name: str) -> bool:
    """Return whether a topic's name may be as long as ``name``."""
    return 0 < len(name) <= NAME_LENGTH_MAX


def complaint_about_topic_name(name: str) -> str | None:
    """Return what is wrong with a topic's name; None if nothing is."""
    if name in ("", ".", ".."):
        return f"{name!r} is not a name"
    if len(name) > NAME_LENGTH_MAX:
        return f"a name has at most {NAME_LENGTH_MAX} characters"
    if not _LEGAL.fullmatch(name):
        return "a name has ASCII letters and digits, '.', '_' and '-' only"
    return None
