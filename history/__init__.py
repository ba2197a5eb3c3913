"""The past, read back from a bus: events and decisions in pages, and the state as of any seq or time that it reaches.

moment      "4711", "2026-11-22T13:40:00", "10m": which seq is meant
reach       how far back the bus goes, and the error for what lies before that
log         events and decisions between two seqs, page by page
state_at    the state as of a seq: the nearest older state, and the rules on the events since

about, chain                     the decisions about one partition, found by the bus's index and by halves
told_events, told_decisions      events and decisions in sentences
explanation                      why a partition is as it is

what_if, tally                   the same events twice through the rules, and the counts of each way
comparison, comparison_text      what differs
"""
