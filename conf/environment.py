"""Settings from the environment: ``ISRFLOW_BROKER_SESSION_TIMEOUT_MS`` for ``broker.session.timeout.ms``."""

import difflib
import functools
import re
from collections.abc import Collection, Mapping
from importlib.resources import files

PREFIX = "ISRFLOW_"
CONF_VARIABLE = "ISRFLOW_CONF"
# Variables that are not settings: the names of the settings file, the Java and the cache, a secret (options are visible
# in lists of processes), and the switch with which tests record results.
OTHERS = frozenset({CONF_VARIABLE, "ISRFLOW_JAVA", "ISRFLOW_CACHE", "ISRFLOW_METRICS_TOKEN", "ISRFLOW_REWRITE"})
# They list the settings of all kinds of process. One environment may serve several, and each takes what it knows.
REFERENCES = ("reference.toml", "gateway-reference.toml")
_KEY = re.compile(r'^"?([a-z][a-z0-9._]*)"? = ', re.MULTILINE)

# Kubernetes sets such variables in each pod beside a Service whose name begins with isrflow.
_OF_A_SERVICE = re.compile(
    r"[A-Z0-9_]+_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS = re.compile(r"(tcp|udp|sctp)://", re.IGNORECASE)


class UnknownVariableError(Exception):
    """A variable begins like a setting's, but no setting has that name. The message names the nearest one."""


def variable_of(key: str) -> str:
    """Return the name of the environment variable for the setting ``key``."""
    return PREFIX + key.replace(".", "_").upper()


def given_in(
    environment: Mapping[str, str], keys: Collection[str], reference: str = f"conf/{REFERENCES[0]}"
) -> dict[str, tuple[str, str]]:
    """Return the variable and the text for each of the ``keys`` that ``environment`` sets. Empty text sets nothing.

    Raises ``UnknownVariableError`` for a variable that no kind of process has. ``reference`` lists all settings.
    """
    variables = {variable_of(key): key for key in keys}
    found: dict[str, tuple[str, str]] = {}
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or name in OTHERS or _is_of_a_service(name, text):
            continue
        if name not in variables:
            if name in _documented():
                continue
            raise UnknownVariableError(f"{name}: no setting has this variable{_nearest(name, variables, reference)}")
        if text:
            found[variables[name]] = (name, text)
    return found


def _is_of_a_service(name: str, text: str) -> bool:
    """Return whether Kubernetes set a variable. A setting may end in ``_PORT`` too, but has no address."""
    return bool(_OF_A_SERVICE.fullmatch(name) or (name.endswith("_PORT") and _ADDRESS.match(text)))


@functools.cache
def _documented() -> frozenset[str]:
    """Return the variables of all settings of all kinds of process."""
    texts = (files("conf").joinpath(name).read_text(encoding="utf-8") for name in REFERENCES)
    return frozenset(variable_of(key) for text in texts for key in _KEY.findall(text))


def _nearest(name: str, variables: Collection[str], reference: str) -> str:
    # Without the prefix, which makes all of them alike.
    others = sorted(variable.removeprefix(PREFIX) for variable in {*variables, *OTHERS})
    near = difflib.get_close_matches(name.removeprefix(PREFIX), others, n=1, cutoff=0.6)
    return f"; did you mean {PREFIX}{near[0]}?" if near else f"; {reference} lists all settings"
