"""Ask the engine or the gateway in this container for a path such as /healthz. End with 0 for a yes, otherwise with 1.

``python probe.py /healthz [FILE]`` reads the same settings, so it asks where that process answers, with its token.
Without FILE it reads the one that ISRFLOW_CONF names.
"""

import os
import ssl
import sys
import urllib.request
from pathlib import Path

from conf.loader import load
from conf.security.exposure import MetricsSettings
from conf.security.token import VARIABLE

TIMEOUT_S = 8.0


def settings_in(file: str) -> MetricsSettings:
    """Return the settings of the process that starts with ``file``, which may be empty."""
    if file:
        from cli.gateway.file import is_gateways
        from cli.gateway.file import settings_in as of_gateway

        if is_gateways(Path(file)):
            return of_gateway(Path(file))
    return load(Path(file) if file else None, environment=os.environ)


def main(path: str, file: str = "") -> int:
    """Return the exit code."""
    settings = settings_in(file or os.environ.get("ISRFLOW_CONF", ""))
    scheme = "https" if settings.metrics_ssl_keystore_location else "http"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.metrics_host, settings.metrics_host)
    address = f"[{host}]" if ":" in host else host
    request = urllib.request.Request(f"{scheme}://{address}:{settings.metrics_port}{path}")
    token = Path(settings.metrics_token_file).read_text() if settings.metrics_token_file else os.environ.get(VARIABLE)
    if token:
        request.add_header("Authorization", f"Bearer {token.strip()}")
    # The certificate has the engine's public name, and this connection stays in its container.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # Podman gives containers its host's proxy, which does not reach them.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=TIMEOUT_S):
            return 0
    except OSError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
