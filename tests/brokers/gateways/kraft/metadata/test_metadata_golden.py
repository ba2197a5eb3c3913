"""The same decisions always give the same bytes of the metadata log.

Brokers have read them, gateways hold them on disk, and a start compares them byte by byte with what the decisions
give now. ``tests/golden/metadata.decisions.xz`` holds decisions of every kind that becomes records. ``metadata.txt``
has what they give: each record's name, version and the first digits of its digest, and the digest of the whole log.
"""

import hashlib
import lzma
import os
import re
from itertools import groupby
from pathlib import Path

from brokers.gateways.kraft import metadata
from brokers.gateways.kraft.log.entries import encode_entry, records_in
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from state.decisions import decode

GOLDEN = Path(__file__).parents[4] / "golden"
WHAT_TO_DO = """
These decisions now give other bytes of the metadata log. Gateways whose log has such decisions would refuse to start,
or would serve brokers another log than the one that they have read, which stops brokers. Let new decisions say what
earlier ones did not say, and write something new only for those. ISRFLOW_REWRITE=1 writes what the decisions give now.
"""


def log() -> tuple[list[str], bytes]:
    """Return a line per record of the golden decisions' log, and its bytes."""
    told = lzma.decompress((GOLDEN / "metadata.decisions.xz").read_bytes())
    image, lines, data, offset = MetadataImage(), [], bytearray(), 0
    for seq, event in groupby(map(decode, told.splitlines()), key=lambda decision: decision.seq):
        image, entry = translate(image, list(event))
        if entry is None:
            continue
        written, offset = encode_entry(entry, offset)
        data += written
        for record in records_in(written):
            content = hashlib.sha256(repr(record.values).encode()).hexdigest()
            lines.append(f"{seq} {record.name} {record.version} {content[:8]}")
    return lines, bytes(data)


def test_the_same_decisions_give_the_same_bytes() -> None:
    lines, data = log()
    found = "\n".join([*lines, f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()}", ""])
    if os.environ.get("ISRFLOW_REWRITE"):
        (GOLDEN / "metadata.txt").write_text(found)
    assert found == (GOLDEN / "metadata.txt").read_text(), WHAT_TO_DO


def test_every_kind_of_record_is_in_the_golden_log() -> None:
    lines, _ = log()
    source = Path(metadata.__file__).parent
    kinds = {kind for path in source.glob("*.py") for kind in re.findall(r'Record\("(\w+)"', path.read_text())}
    assert kinds - {line.split()[1] for line in lines} == set()
