"""The past, read back from a bus: events and decisions in pages, and the state as of any seq or time that it reaches.

moment      the seq that "4711", "2026-11-22T13:40:00" or "10m" stands for
reach       how far back the bus goes, and the error for what lies before that
log         events and decisions between two seqs, page by page
state_at    the state as of a seq: the nearest older state, and the rules on the events since

about, chain                     the decisions about one partition, found with the bus's index and by bisection
told_events, told_decisions      events and decisions in sentences
explanation                      why a partition is as it is

what_if, tally                   the same events decided twice, as they were and with changes, and the counts of both
comparison, comparison_text      the differences between the two, as JSON and as text
"""
