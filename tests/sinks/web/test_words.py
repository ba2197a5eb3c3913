"""The page's words for what is decided."""

import re
from pathlib import Path

from sinks.web import seen
from sinks.web.partitions import PROBLEMS
from state.decisions import KIND_RANK
from state.reason import Reason

WORDS = (Path(seen.__file__).parent / "static" / "words.js").read_text()
# Of decisions that the page does not list.
UNSEEN = {"high_watermark", "no_op", "imbalance", "producer_ids"}
NOT_LISTED = {Reason.REPLICATED, Reason.MAX_IDLE_INTERVAL, Reason.PRODUCER_IDS_ALLOCATED}


def test_the_page_has_words_for_every_kind_problem_and_reason() -> None:
    assert set(re.findall(r'case "(\w+)":', WORDS)) == set(KIND_RANK) - UNSEEN
    assert set(re.findall(r"\b([a-z_]+): \[\"", WORDS)) == set(PROBLEMS)
    assert set(re.findall(r"\b([A-Z_]{8,}): \"", WORDS)) == {reason.value for reason in set(Reason) - NOT_LISTED}
