"""The release of a gateway's brokers, as the gateway knows it."""

from types import SimpleNamespace
from typing import Any, cast

from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.metadata.image import MetadataImage, Registration
from brokers.gateways.kraft.metadata.sliced_map import SlicedMap


def brokers_version(finalized: int | None, *supported: int) -> int:
    """Return the metadata version that counts at a level of the log, with brokers that support these."""
    features: SlicedMap[str, int] = SlicedMap() if finalized is None else SlicedMap({"metadata.version": finalized})
    brokers = {
        number: Registration(number, 1, "i", (), (("metadata.version", 7, high),), None, (), False, False)
        for number, high in enumerate(supported)
    }
    storage = SimpleNamespace(image=MetadataImage(features=features, brokers=SlicedMap(brokers)))
    others: dict[str, Any] = dict.fromkeys(Context.__struct_fields__)
    return Context(**(others | {"storage": cast(Any, storage)})).brokers_metadata_version


def test_the_newest_broker_says_which_settings_topics_may_have() -> None:
    assert brokers_version(None) == 27
    assert brokers_version(21) == 21
    assert brokers_version(21, 21, 21) == 21
    # Brokers are upgraded before the level is raised. A small segment.bytes would stop the newer one.
    assert brokers_version(21, 21, 27) == 27
