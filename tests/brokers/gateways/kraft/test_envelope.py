"""What a broker is told when leadership changes while a forwarded request is read."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from brokers.gateways.kraft.messages import decode_request, encode_request
from brokers.gateways.kraft.serving import envelope
from brokers.wire.errors import ErrorCode
from tests.support.controller_client import key_of


def test_the_envelope_itself_says_that_another_gateway_leads() -> None:
    view = SimpleNamespace(leads=True, quorum_epoch=1)

    async def offload(size: int, work: Callable[..., Any], *given: Any) -> Any:
        view.leads = False
        return work(*given)

    context: Any = SimpleNamespace(
        access=SimpleNamespace(must_know_callers=False), offload=offload, quorum_view=view, is_cut_off=False
    )
    inner = encode_request(key_of("DeleteTopics"), 6, 1, "kafka-topics", {"Topics": [], "TimeoutMs": 1_000})
    values = {"RequestData": inner, "RequestPrincipal": None, "ClientHostAddress": bytes([127, 0, 0, 1])}
    request = decode_request(encode_request(key_of("Envelope"), 0, 2, "broker", values))
    peer: Any = SimpleNamespace(host="127.0.0.1")
    assert asyncio.run(envelope(context, request, peer)) == {"ErrorCode": ErrorCode.NOT_CONTROLLER}
