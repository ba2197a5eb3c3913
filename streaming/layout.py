"""How the state on a bus is laid out in shards and pages. The settings must agree with it."""

import math

from bus.interface import Image
from conf.settings import Settings
from state.codec import CodecError, decode_cluster, decode_slices
from state.ids import page_of, topic_hash
from state.shard_outcome import CLUSTER_PAGE

_PAGES_MAX = 1 << 20
Places = dict[tuple[str, int], int]


def misfit(image: Image, settings: Settings) -> str | None:
    """Return which setting to change before the state can be used; None if all of them fit.

    The rules look for a topic on the page that the settings give. With other settings a topic would be listed but not
    found, and could be created a second time. Raises ``CodecError``, which names the page that cannot be read.
    """
    shards, places = _layout(image)
    if shards not in (None, settings.shards):
        return _said("shards", settings.shards, settings, f"it is in {shards} shards: set shards = {shards}")
    if all(
        page_of(topic, settings.shards, settings.pages) + nth * settings.pages == page
        for (topic, nth), page in places.items()
    ):
        return None
    pages = _pages_of(places, settings.shards)
    other = f"set pages = {pages}" if pages else "set pages to what it was when that was written"
    return _said("pages", settings.pages, settings, f"its topics are on other pages than these: {other}")


def _said(name: str, value: int, settings: Settings, found: str) -> str:
    return f"{name} is {value}, which does not fit the state on {settings.bus_name}: {found}"


def _layout(image: Image) -> tuple[int | None, Places]:
    """Return the number of shards, None if there is no state yet, and the page of each topic's slices."""
    shards, places = None, Places()
    for page in image.pages:
        try:
            if page.page != CLUSTER_PAGE:
                places |= {(one.topic.topic, one.nth): page.page for one in decode_slices(page.body)}
            else:
                shards = decode_cluster(page.body).shards
        except CodecError as error:
            raise CodecError(f"shard {page.shard}, page {page.page}: {error}") from error
    return shards, places


def _pages_of(places: Places, shards: int) -> int | None:
    """Return a number of pages that puts every topic where it is. It need not be the original one.

    Such a number is greater than the page of every first slice. It divides the difference between that page and the
    number that the page was computed from. Two slices of a topic are this many pages apart.
    """
    for (topic, nth), page in places.items():
        if nth > 0 and (topic, 0) in places:
            return (page - places[topic, 0]) // nth
    common = math.gcd(*(topic_hash(topic) // shards - page for (topic, _), page in places.items()))
    least = max(places.values()) + 1
    candidates = (Settings().pages, *range(least, min(common or least, _PAGES_MAX) + 1))
    return next((pages for pages in candidates if pages >= least and common % pages == 0), None)
