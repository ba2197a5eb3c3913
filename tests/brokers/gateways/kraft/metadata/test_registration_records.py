"""Registrations are written in the version that brokers of the metadata version read, and read in every version."""

import pytest

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.snapshot import image_of, records_of
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.metadata.record_frame import decode_record
from state.decisions import BrokerDecision
from state.features import METADATA_VERSION
from tests.brokers.gateways.kraft.decisions import DIRECTORIES, EARLIER, after, broker, records_in

REGISTER, CHANGE = "RegisterBrokerRecord", "BrokerRegistrationChangeRecord"


def at_level(metadata_version: int) -> MetadataImage:
    image = after(EARLIER)
    return image._replace(features=image.features.set(METADATA_VERSION, metadata_version))


def written(image: MetadataImage, decision: BrokerDecision) -> tuple[MetadataImage, str, int]:
    """Return the image after a decision, and the name and version of its only record."""
    image, entry = translate(image, [decision])
    [record] = records_in(entry)
    return image, record.name, record.version


@pytest.mark.parametrize(("level", "register", "change"), [(21, 3, 2), (29, 3, 2), (30, 4, 3), (33, 4, 3)])
def test_a_registration_has_the_version_of_the_level(level: int, register: int, change: int) -> None:
    image, *fenced = written(at_level(level), broker(1, "fenced"))
    assert fenced == [CHANGE, change]
    _, *again = written(image, broker(1, "fenced", broker_epoch=7, rack="r"))
    assert again == [REGISTER, register]
    in_snapshot = {(one.name, one.version) for one in map(decode_record, records_of(image)) if one.name == REGISTER}
    assert in_snapshot == {(REGISTER, register)}


def test_a_log_has_registrations_of_both_versions_once_its_level_is_raised() -> None:
    """What was written before stays as it was, and a snapshot of the later log has the later version."""
    raised = at_level(30)
    image, *change = written(raised, broker(1, "fenced"))
    assert change == [CHANGE, 3]
    assert image.brokers.set(1, raised.brokers[1]) == raised.brokers
    assert image_of(map(decode_record, records_of(image)), image.quorum_epoch) == image


def test_cordoned_directories_are_in_the_registration_until_they_are_none() -> None:
    directory = DIRECTORIES[1]
    image, *change = written(at_level(30), broker(1, cordoned_log_dirs=(directory,)))
    assert (change, image.brokers[1].cordoned_log_dirs) == ([CHANGE, 3], (directory,))
    assert image_of(map(decode_record, records_of(image)), image.quorum_epoch) == image
    image, *again = written(image, broker(1, "fenced", broker_epoch=7, cordoned_log_dirs=(directory,)))
    assert (again, image.brokers[1].cordoned_log_dirs) == ([REGISTER, 4], (directory,))
    image, *change = written(image, broker(1, "fenced", broker_epoch=7))
    assert (change, image.brokers[1].cordoned_log_dirs) == ([CHANGE, 3], ())
