"""Run an engine for a while under load, and check that nothing grows: ``python -m tests.soak.run --minutes M``.

``make soak MINUTES=240`` writes the samples and a plot of them; ``README.md`` shows the longest run.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.soak.growth import Finding, findings
from tests.soak.load import RECORD_INTERVAL_S, Load
from tests.soak.samples import Sample, Sampler
from tests.support.engine import Engine
from tests.support.mock_cluster import MockCluster
from tests.support.scrape import metrics_url

SETTINGS = ("metrics.port=0", "broker.session.timeout.ms=4000", "broker.heartbeat.interval.ms=500")
# Small, so that the bus file stops growing within minutes.
RETENTION = "retention.events=1000"
# Pools of the JVM fill before anything is sampled: until its threads have not become more for so long, ...
STEADY_S = 20.0
# ... but if something leaks, they always become more.
WARM_UP_S_MAX = 180.0
WARM_UP_INTERVAL_S = 2.0
SAMPLES_MIN = 60
LOG_CHARS_SHOWN = 4_000
INTERVAL_S_MAX = 30.0
MINUTES_FACTOR_MAX = 3
# In a shorter run the samples follow each other so quickly that collecting would be most of the load.
COLLECTS_MINUTES_MIN = 10.0


class SoakError(Exception):
    """The engine or its load ended during a soak. The message says which, and how; ``samples`` are those until then."""

    def __init__(self, message: str, samples: Sequence[Sample] = ()) -> None:
        super().__init__(message)
        self.samples = samples


def soak(
    directory: Path,
    minutes: float,
    settings: Sequence[str] = (),
    *,
    record_interval_s: float = RECORD_INTERVAL_S,
    batches_min: int = 0,
) -> list[Sample]:
    """Run engine, brokers and load for ``minutes``, and return the samples taken. Raises ``SoakError``.

    On a busy machine it goes on until there were ``batches_min``, but at most ``MINUTES_FACTOR_MAX`` times as long.
    """
    engine = Engine(directory, *SETTINGS, *settings)
    cluster = MockCluster(directory, settings=SETTINGS[1:])
    load = Load(cluster, record_interval_s)
    try:
        engine.wait_ready(cluster.bus)
        cluster.start()
        load.start()
        collects = minutes >= COLLECTS_MINUTES_MIN
        sampler = Sampler(engine.process.pid, directory, metrics_url(engine.log), collects=collects)
        _warm_up(sampler)
        samples = _sampled(sampler, minutes, batches_min, engine, load)
        load.stop()
        if load.errors:
            raise SoakError(f"the load failed: {load.errors[0]!r}")
        if engine.stop() != 0:
            raise SoakError(f"the engine ended with an error: {engine.log.read_text()[-LOG_CHARS_SHOWN:]}")
        return samples
    finally:
        load.stop()
        cluster.stop()
        engine.kill()


def _warm_up(sampler: Sampler) -> None:
    began_s = steady_s = time.monotonic()
    most = 0
    while (now_s := time.monotonic()) < min(steady_s + STEADY_S, began_s + WARM_UP_S_MAX):
        if (threads := sampler.threads()) > most:
            most, steady_s = threads, now_s
        time.sleep(WARM_UP_INTERVAL_S)


def _sampled(sampler: Sampler, minutes: float, batches_min: int, engine: Engine, load: Load) -> list[Sample]:
    interval_s = min(minutes * 60 / SAMPLES_MIN, INTERVAL_S_MAX)
    began_s = time.monotonic()
    samples = [sampler.take()]

    def is_over() -> bool:
        minutes_now = (time.monotonic() - began_s) / 60
        has_batches = samples[-1].batches - samples[0].batches >= batches_min
        return minutes_now >= minutes * (1 if has_batches else MINUTES_FACTOR_MAX)

    while not is_over():
        time.sleep(interval_s)
        if engine.process.poll() is not None:
            raise SoakError(f"the engine ended: {engine.log.read_text()[-LOG_CHARS_SHOWN:]}", samples)
        if load.errors:
            said = engine.log.read_text()[-LOG_CHARS_SHOWN:]
            raise SoakError(f"the load failed: {load.errors[0]!r}; the engine's log ends with:\n{said}", samples)
        samples.append(sampler.take())
    return samples


def tell(samples: Sequence[Sample], found: Sequence[Finding]) -> None:
    """Print how long a run was, and each series."""
    took_min = (samples[-1].at_s - samples[0].at_s) / 60
    print(f"{took_min:.1f} minutes, {samples[-1].batches - samples[0].batches} batches, {len(samples)} samples")
    for finding in found:
        print(f"  {finding}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--out", type=Path, default=None, help="a folder for samples.json and soak.svg")
    parser.add_argument(
        "--set", action="append", default=[], dest="settings", help="a setting of the engine, key=value"
    )
    arguments = parser.parse_args()
    failure = None
    with tempfile.TemporaryDirectory(prefix="isrflow-soak-") as name:
        try:
            samples = soak(Path(name), arguments.minutes, [RETENTION, *arguments.settings])
        except SoakError as error:
            failure, samples = error, list(error.samples)
    if failure is not None and len(samples) < SAMPLES_MIN:
        raise failure
    found = findings(samples)
    tell(samples, found)
    if arguments.out is not None:
        _write(samples, arguments.out)
    if failure is not None:
        raise failure
    sys.exit(any(finding.grew for finding in found))


def _write(samples: Sequence[Sample], out: Path) -> None:
    from tests.soak.plot import draw

    out.mkdir(parents=True, exist_ok=True)
    (out / "samples.json").write_bytes(msgspec.json.encode(samples))
    draw(samples, out / "soak.svg")
    print(f"wrote {out}/samples.json and {out}/soak.svg")


if __name__ == "__main__":
    main()
