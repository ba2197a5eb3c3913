"""The way into controllers' listeners, from a file in the form of Kafka's client properties."""

from brokers.wire.security.connecting import Client
from conf.security.tls import TlsFiles, client_contexts
from isrflow.kafka.client_config import ClientConfig


def client_of(config: ClientConfig) -> Client:
    """Return how to connect by a file that was read. Raises ``TlsError`` if a file that it names cannot be used."""
    given = config.for_kafka_python()
    files = TlsFiles(
        keystore=given.get("ssl_certfile") or "",
        truststore=given.get("ssl_cafile") or "",
        key_password=given.get("ssl_password") or "",
    )
    tls = client_contexts(files, checks_host=given["ssl_check_hostname"]) if config.protocol.endswith("SSL") else None
    if not config.protocol.startswith("SASL"):
        return Client(tls)
    password = given["sasl_plain_password"]
    return Client(tls, given["sasl_mechanism"], given["sasl_plain_username"], lambda: password)
