"""From a certificate's subject to a principal, by Kafka's rules, and from a principal to a broker or gateway.

``ssl.principal.mapping.rules`` is a list such as ``RULE:^CN=([^,]+).*$/$1/L,DEFAULT``: the first rule whose pattern
matches the whole name gives the principal, and DEFAULT gives the name as it is (``SslPrincipalMapper``). A slash in a
pattern or replacement is written with a backslash.
"""

import re
from typing import NamedTuple

# A rule is DEFAULT, or a pattern, a replacement, and perhaps L or U.
_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)[ \t\r\n]*(?:,[ \t\r\n]*|\Z)")
_DEFAULT = re.compile(r"DEFAULT[ \t\r\n]*(?:,[ \t\r\n]*|\Z)")
_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)", re.DOTALL)
# The keywords of RFC 2253, as Java's X500Principal.getName writes them.
_KEYWORDS = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_EMAIL = "emailAddress"
_EMAIL_OID = "1.2.840.113549.1.9.1"
_IA5_STRING = 0x16
_SHORT_FORM_MAX = 127
_ESCAPED = re.compile(r'([,+"\\<>;])')
ID = "<id>"

# As ``SSLSocket.getpeercert`` gives it: the parts of the name, each with its attributes.
Subject = tuple[tuple[tuple[str, str], ...], ...]


class RulesError(ValueError):
    """A setting about principals cannot be read."""


class _Rule(NamedTuple):
    # None for DEFAULT.
    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if not self.pattern.fullmatch(name):
            return None
        mapped = self.pattern.sub(self._replaced, name)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)

    def _replaced(self, match: re.Match[str]) -> str:
        groups = match.re.groups

        def part(found: re.Match[str]) -> str:
            if found[1] is not None:
                return found[1]
            digits = found[2]
            # As many digits as name a group; the rest is text.
            length = next((size for size in range(len(digits), 0, -1) if int(digits[:size]) <= groups), 0)
            return (match[int(digits[:length])] or "") + digits[length:] if length else found[0]

        return _REFERENCE.sub(part, self.replacement)


class PrincipalRules:
    """The rules of ``ssl.principal.mapping.rules``. Raises ``RulesError``."""

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        text = text.strip()
        position = 0
        while position < len(text):
            found = _DEFAULT.match(text, position) or _RULE.match(text, position)
            if found is None:
                expected = "expected DEFAULT or RULE:pattern/replacement/[LU], separated by commas"
                raise RulesError(f"ssl.principal.mapping.rules: {text[position : position + 80]!r}: {expected}")
            self._rules.append(_Rule(None) if found.re is _DEFAULT else _rule(found))
            position = found.end()

    def principal_of(self, subject: Subject) -> str | None:
        """Return the principal of a certificate's subject, or None if no rule applies."""
        name = distinguished_name(subject)
        mapped = next((found for rule in self._rules if (found := rule.apply(name)) is not None), None)
        return f"User:{mapped}" if mapped else None


def _rule(found: re.Match[str]) -> _Rule:
    try:
        return _Rule(re.compile(found[1]), found[2], found[3])
    except re.error as error:
        raise RulesError(f"ssl.principal.mapping.rules: {found[1]!r} is not a pattern: {error}") from error


def distinguished_name(subject: Subject) -> str:
    """Write a subject as RFC 2253 has it, the last part first."""
    return ",".join("+".join(_attribute(key, value) for key, value in part) for part in reversed(subject))


def _attribute(key: str, value: str) -> str:
    if key == _EMAIL and value.isascii() and len(value) <= _SHORT_FORM_MAX:
        # Java knows no keyword for it, and so writes the bytes of the certificate.
        return f"{_EMAIL_OID}=#{bytes((_IA5_STRING, len(value))).hex()}{value.encode().hex()}"
    escaped = _ESCAPED.sub(r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if escaped.endswith(" ") and len(value) > 1:
        escaped = escaped[:-1] + "\\ "
    return f"{_KEYWORDS.get(key, key)}={escaped}"


class NodePrincipals:
    """The principals of numbered nodes, such as ``User:broker-<id>``. Raises ``RulesError``."""

    def __init__(self, setting: str, text: str) -> None:
        before, found, after = text.partition(ID)
        if not found or ID in after or not before.startswith("User:"):
            raise RulesError(f"{setting}: expected a principal with one {ID}, such as User:broker-{ID}, got {text!r}")
        # No leading zeros, so that no two principals are one node.
        self._pattern = re.compile(rf"{re.escape(before)}(0|[1-9][0-9]{{0,9}}){re.escape(after)}")

    def node_of(self, principal: str) -> int | None:
        """Return the id of the node that a principal is, or None if it is none."""
        found = self._pattern.fullmatch(principal)
        return int(found[1]) if found else None
