"""Where a voter is, as text."""

import pytest

from state.voter_endpoints import ENDPOINTS_MAX, VoterEndpoint, endpoints_of, text_of


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("CONTROLLER://host:9093", [("CONTROLLER", "host", 9093)]),
        ("A://10.0.0.1:1,B_2.x-y://[::1]:65535", [("A", "10.0.0.1", 1), ("B_2.x-y", "::1", 65_535)]),
    ],
)
def test_endpoints_are_read_and_written_alike(text: str, endpoints: list[tuple[str, str, int]]) -> None:
    assert endpoints_of(text) == tuple(VoterEndpoint(*one) for one in endpoints)
    assert text_of(endpoints_of(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host:9093",
        "C://host",
        "C://host:0",
        "C://host:65536",
        "C://a b:1",
        "C://h:1,",
        "C://h:1, D://h:2",
        "é://h:1",
    ],
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected LISTENER://HOST:PORT"):
        endpoints_of(text)


def test_a_listener_is_named_once_and_there_are_not_too_many() -> None:
    with pytest.raises(ValueError, match="names a listener twice"):
        endpoints_of("C://a:1,C://b:1")
    assert len(endpoints_of(",".join(f"C{number}://a:1" for number in range(ENDPOINTS_MAX)))) == ENDPOINTS_MAX
    with pytest.raises(ValueError, match="at most"):
        endpoints_of(",".join(f"C{number}://a:1" for number in range(ENDPOINTS_MAX + 1)))
