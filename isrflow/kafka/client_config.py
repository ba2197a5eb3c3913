"""How the clients of a bus on Kafka connect: TLS and SASL, from a file in the form of Kafka's own client properties.

The variable ``ISRFLOW_KAFKA_CLIENT_CONFIG`` names the file. It is no part of the bus's URL, because URLs are logged,
and processes that are started inherit it. In the file a value may be ``${env:NAME}`` or ``${file:PATH}``, so a password
need not stand in it. No error names a value.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isrflow.errors import BusError

VARIABLE = "ISRFLOW_KAFKA_CLIENT_CONFIG"
SETTING = "kafka.client.config"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_BYTES_MAX = 1024 * 1024
_CHOICES = {
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl.mechanism": MECHANISMS,
    "ssl.endpoint.identification.algorithm": ("https", ""),
    "ssl.keystore.type": ("PEM",),
    "ssl.truststore.type": ("PEM",),
}
_TEXTS = (
    "sasl.username",
    "sasl.password",
    "sasl.jaas.config",
    "ssl.keystore.location",
    "ssl.key.password",
    "ssl.truststore.location",
)
_LINE = re.compile(r"[ \t]*([A-Za-z0-9._-]+)[ \t]*[=:][ \t]*(.*)")
_JAAS = re.compile(r"""[ \t]*([A-Za-z0-9._]+)[ \t]+required[ \t]+(.*?);?[ \t]*""")
_JAAS_OPTION = re.compile(r"""(username|password)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)')""")
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")


class ClientConfig:
    """What a file says. ``repr`` and errors show no value of it."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __repr__(self) -> str:
        return f"ClientConfig({', '.join(sorted(self._values))})"

    @property
    def protocol(self) -> str:
        return self._values.get("security.protocol", "PLAINTEXT")

    def for_librdkafka(self) -> dict[str, Any]:
        """Return the settings for confluent-kafka."""
        values, conf = self._values, {"security.protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            conf |= {name: values[name] for name in ("sasl.mechanism", "sasl.username", "sasl.password")}
        if self.protocol.endswith("SSL"):
            conf["ssl.endpoint.identification.algorithm"] = "https" if self._checks_host else "none"
            keystore = values.get("ssl.keystore.location", "")
            given = {
                "ssl.ca.location": values.get("ssl.truststore.location", ""),
                "ssl.certificate.location": keystore,
                "ssl.key.location": keystore,
                "ssl.key.password": values.get("ssl.key.password", ""),
            }
            conf |= {name: value for name, value in given.items() if value}
        return conf

    def for_kafka_python(self) -> dict[str, Any]:
        """Return the settings for kafka-python."""
        values: Mapping[str, str] = self._values
        conf: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            conf |= {
                "sasl_mechanism": values["sasl.mechanism"],
                "sasl_plain_username": values["sasl.username"],
                "sasl_plain_password": values["sasl.password"],
            }
        if self.protocol.endswith("SSL"):
            keystore = values.get("ssl.keystore.location") or None
            conf |= {
                "ssl_check_hostname": self._checks_host,
                "ssl_cafile": values.get("ssl.truststore.location") or None,
                "ssl_certfile": keystore,
                "ssl_keyfile": keystore,
                "ssl_password": values.get("ssl.key.password") or None,
            }
        return conf

    @property
    def _checks_host(self) -> bool:
        return self._values.get("ssl.endpoint.identification.algorithm", "https") == "https"


def client_config(environment: Mapping[str, str] = os.environ) -> ClientConfig:
    """Read the file that the environment names. Without one, clients use neither TLS nor SASL.

    Raises ``BusError`` that names the file and the field.
    """
    file = environment.get(VARIABLE, "")
    return config_in(file, SETTING, environment) if file else ClientConfig({})


def config_in(file: str, setting: str, environment: Mapping[str, str] = os.environ) -> ClientConfig:
    """Read a file that ``setting`` names. Raises ``BusError`` that names the file and the field."""
    try:
        with Path(file).open(encoding="utf-8") as opened:
            text = opened.read(_BYTES_MAX)
    except OSError as error:
        raise BusError(f"{setting}: {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BusError(f"{setting}: {file}: expected UTF-8 text") from None
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            key, value = _parsed(f"{setting}: {file}: line {number}", line)
            values[key] = _resolved(f"{setting}: {file}: {key}", value, environment)
    return ClientConfig(_complete(f"{setting}: {file}", values))


def _parsed(where: str, line: str) -> tuple[str, str]:
    found = _LINE.fullmatch(line)
    if found is None:
        # Not the line, because it may be half a password.
        raise BusError(f"{where}: expected key=value on one line")
    key, value = found[1], found[2].strip()
    if key not in _CHOICES and key not in _TEXTS:
        raise BusError(f"{where}: unknown key {key!r}: expected one of {', '.join((*_CHOICES, *_TEXTS))}")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise BusError(f"{where}: {key}: expected one of {', '.join(one or '(empty)' for one in _CHOICES[key])}")
    return key, value


def _resolved(where: str, value: str, environment: Mapping[str, str]) -> str:
    found = _REFERENCE.fullmatch(value)
    if found is None:
        return value
    kind, name = found.groups()
    if kind == "env":
        if name not in environment:
            raise BusError(f"{where}: the variable {name} is not set")
        return environment[name]
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BusError(f"{where}: {name}: {getattr(error, 'strerror', None) or 'expected UTF-8 text'}") from None


def _complete(where: str, values: dict[str, str]) -> dict[str, str]:
    """Take user and password from ``sasl.jaas.config``, and check that nothing is missing."""
    if "sasl.jaas.config" in values:
        found = _JAAS.fullmatch(values.pop("sasl.jaas.config"))
        options = {
            one[1]: one[2] if one[2] is not None else one[3] for one in _JAAS_OPTION.finditer(found[2] if found else "")
        }
        if found is None or set(options) != {"username", "password"}:
            raise BusError(f'{where}: sasl.jaas.config: expected MODULE required username="..." password="...";')
        values = {f"sasl.{name}": value for name, value in options.items()} | values
    if values.get("security.protocol", "PLAINTEXT").startswith("SASL"):
        missing = [name for name in ("sasl.mechanism", "sasl.username", "sasl.password") if not values.get(name)]
        if missing:
            raise BusError(f"{where}: security.protocol={values['security.protocol']} needs {', '.join(missing)}")
    if values.get("security.protocol", "PLAINTEXT").endswith("SSL"):
        _check_files(where, values)
    return values


def _check_files(where: str, values: Mapping[str, str]) -> None:
    """Raise ``BusError`` if a file of TLS cannot be used. The client would name neither the key nor the file."""
    # A bus without TLS need not pay for this import.
    from isrflow.kafka.tls_files import complaint_about_keystore, complaint_about_truststore

    truststore, keystore = values.get("ssl.truststore.location", ""), values.get("ssl.keystore.location", "")
    if truststore and (complaint := complaint_about_truststore(truststore)):
        raise BusError(f"{where}: ssl.truststore.location: {truststore}: {complaint}")
    if keystore and (complaint := complaint_about_keystore(keystore, values.get("ssl.key.password", ""))):
        raise BusError(f"{where}: ssl.keystore.location: {keystore}: {complaint}")
