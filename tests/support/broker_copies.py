"""Brokers' copies of a metadata log: their directories, written as Kafka lays them out."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.snapshots import path_of
from brokers.wire.batch_header import batches_in
from brokers.wire.record_batch import decode_batches

CLUSTER_ID = "cccccccccccccccccccccc"
READS_MAX = 100


def files_of(directory: Path, *suffixes: str) -> dict[str, bytes]:
    """Read the files with these suffixes, in order of their names.

    If a running gateway removes a file after it was listed, all files are read again.
    """
    for _ in range(READS_MAX):
        with contextlib.suppress(FileNotFoundError):
            return {path.name: path.read_bytes() for path in sorted(directory.glob("*")) if path.suffix in suffixes}
    raise AssertionError(f"files of {directory} went away each of {READS_MAX} times that they were read")


def log_of(directory: Path) -> bytes:
    """Read all segments of a gateway's or a broker's log, in order."""
    return b"".join(files_of(directory, ".log").values())


def cuts_of(data: bytes) -> Iterator[int]:
    """Return each position at which a batch ends."""
    for position, batch in batches_in(data):
        yield position + batch.size


def broker_copy(
    folder: Path, gateway: Path, broker: int = 1, size: int | None = None, cluster_id: str = CLUSTER_ID
) -> Path:
    """Write the directory of a broker that has fetched the first ``size`` bytes of a gateway's log."""
    directory = folder / f"node-{broker}" / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    (directory.parent / "meta.properties").write_text(
        f"#\n#Sun Nov 22 00:00:00 UTC 2026\ncluster.id={cluster_id}\nnode.id={broker}\nversion=1\n"
    )
    begins = min(int(path.stem) for path in gateway.glob("*.log"))
    data = log_of(gateway)[:size]
    (directory / f"{begins:020d}.log").write_bytes(data)
    for snapshot in snapshots.held_in(gateway):
        if snapshot.end_offset == begins:
            path = path_of(directory, snapshot)
            path.write_bytes(path_of(gateway, snapshot).read_bytes())
    epochs: dict[int, int] = {}
    whole = data[: max(cuts_of(data), default=0)]
    for batch in decode_batches(whole):
        epochs.setdefault(batch.leader_epoch, batch.base_offset)
    lines = ["0", str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs.items())]
    (directory / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
    return directory
