"""A client of a controller's listener, like a broker's: one message at a time, in the gateway's own codec."""

import ssl
from typing import Any

from brokers.gateways.kraft.messages import decode_response, encode_message, encode_request, framed, layouts
from brokers.wire.schema import Values
from tests.support.frames import FrameConnection
from tests.support.waiting import TIMEOUT_S

LOOPBACK = "127.0.0.1"
_ENVELOPE = "Envelope"
_METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def key_of(name: str) -> int:
    """Return the API key of a request by the schema's name, without its ``Request``."""
    key = layouts()[f"{name}Request"].api_key
    assert key is not None
    return key


# Where that is not the newest one: a stock controller of the default version gets the same requests.
_OF_4_1 = {"BrokerHeartbeat": 1}


def newest(name: str) -> int:
    """Return the newest version of a request for which there is a layout, and that Kafka 4.1 knows."""
    return _OF_4_1.get(name, layouts()[f"{name}Request"].valid.high)


def principal_bytes(principal: str, is_token: bool = False) -> bytes:
    """Write a principal (``User:alice``) as Kafka's default builder does: a version of two bytes, then its message."""
    kind, _, name = principal.partition(":")
    values = {"Type": kind, "Name": name, "TokenAuthenticated": is_token}
    return bytes(2) + encode_message("DefaultPrincipalData", 0, values)


class ControllerClient(FrameConnection):
    """One connection to a controller."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(LOOPBACK, port, TIMEOUT_S, tls)
        self._correlation_id = 0

    def ask(self, name: str, version: int | None = None, **values: Any) -> Values:
        """Send a request, and return its response; ``version`` is the newest by default."""
        self.send(name, version, **values)
        return self.receive(name, version)

    def send(self, name: str, version: int | None = None, **values: Any) -> None:
        self._correlation_id += 1
        self.send_bytes(framed(_encoded(name, version, self._correlation_id, values)))

    def receive(self, name: str, version: int | None = None) -> Values:
        response = decode_response(key_of(name), newest(name) if version is None else version, self.frame())
        assert response.correlation_id <= self._correlation_id
        return response.values

    def forward(self, name: str, version: int | None = None, principal: str | None = None, **given: Any) -> Values:
        """Send a request as ``envelope`` does, but return the response inside the answer."""
        envelope = self.envelope(name, version, principal, **given)
        assert envelope["ErrorCode"] == 0, envelope
        response = decode_response(key_of(name), newest(name) if version is None else version, envelope["ResponseData"])
        assert response.correlation_id == 77
        return response.values

    def envelope(
        self,
        name: str,
        version: int | None = None,
        principal: str | None = None,
        is_token: bool = False,
        **values: Any,
    ) -> Values:
        """Send a client's request inside an Envelope, as a broker does, and return the response to the Envelope.

        ``is_token`` says that a delegation token proved the principal.
        """
        return self.ask(
            _ENVELOPE,
            RequestData=_encoded(name, version, 77, values),
            RequestPrincipal=None if principal is None else principal_bytes(principal, is_token),
            ClientHostAddress=bytes([127, 0, 0, 1]),
        )

    def fetch(self, offset: int, epoch: int, last_epoch: int = 0, **given: Any) -> Values:
        """Fetch the metadata log as a broker does, and return the response's one partition.

        Like a broker, it leaves PartitionMaxBytes at 0.
        """
        partition = {
            "Partition": 0,
            "CurrentLeaderEpoch": epoch,
            "FetchOffset": offset,
            "LastFetchedEpoch": last_epoch,
            "HighWatermark": given.pop("high_watermark", -1),
        }
        replica = {"ReplicaId": given.pop("replica", -1), "ReplicaEpoch": -1}
        asked = {"ClusterId": None, "MaxWaitMs": 0, "MaxBytes": 1 << 20, "ReplicaState": replica} | given
        topics = [{"TopicId": _METADATA_TOPIC_ID, "Partitions": [partition]}]
        response = self.ask("Fetch", Topics=topics, **asked)
        if not response["Responses"]:
            return response
        [topic] = response["Responses"]
        [told] = topic["Partitions"]
        return dict(told)


def _encoded(name: str, version: int | None, correlation_id: int, values: Values) -> bytes:
    return encode_request(key_of(name), newest(name) if version is None else version, correlation_id, "test", values)
