"""Every place that knows the kinds of bus knows all of them."""

from importlib import import_module
from importlib.util import find_spec

import msgspec

from bus.embedded import EmbeddedBus
from bus.kafka.bus import KafkaBus
from bus.open_bus import files_name
from conf.settings import BusUrl
from isrflow.bus_url import EMBEDDED, KAFKA, KINDS, check_url, kind_of

EXAMPLES = {EMBEDDED: (EmbeddedBus, "sqlite:data/bus.db"), KAFKA: (KafkaBus, "kafka://localhost:9092/isrflow")}


def test_each_kind_of_bus_has_its_modules_and_a_url_that_settings_accept() -> None:
    assert EXAMPLES.keys() == set(KINDS)
    for kind, (bus, url) in EXAMPLES.items():
        check_url(url)
        assert kind_of(url) is kind
        assert msgspec.convert(url, BusUrl) == url
        assert files_name(url)
        assert callable(import_module(kind.log).open_log)
        assert find_spec(f"streaming.sources.{bus.kind}")
