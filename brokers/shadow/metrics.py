"""The metrics of a shadow's own process."""

from collections.abc import Mapping

import msgspec

from conf.metric_series import Labelled, Series


class ShadowMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """A shadow at one moment."""

    lag_ms: int = 0
    # Everything before it was read and published.
    offset: int = 0
    gaps: int = 0
    # By cause.
    operations: Mapping[str, int] = {}


_Series = Series[ShadowMeasures, float | Labelled]

SERIES = (
    _Series(
        "isrflow_shadow_lag_seconds",
        "gauge",
        "The age of the newest batch of the observed metadata log when it was read, or for how long none was read.",
        lambda m: m.lag_ms / 1000,
    ),
    _Series(
        "isrflow_shadow_offset",
        "gauge",
        "The offset in the observed metadata log before which everything was read.",
        lambda m: m.offset,
    ),
    _Series(
        "isrflow_shadow_gaps",
        "counter",
        "Times that records were missed, because controllers keep them only for a while.",
        lambda m: m.gaps,
    ),
    _Series(
        "isrflow_shadow_operations",
        "counter",
        "Operations of the observed controller that were published, by cause.",
        lambda m: {(cause,): count for cause, count in m.operations.items()},
        ("cause",),
    ),
)
