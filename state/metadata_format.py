"""Which format the metadata log of gateways is written in.

What a decision comes to in that log never changes, so what is to be written otherwise, or besides, is a new format. A
gateway says which one it can write, and the decision on the quorum's leader which one holds from there on: the newest
that every gateway that is heard can write.

1: what there was at first; a ``quorum`` decision that names no format has this one.
2: the settings of the cluster that brokers act on are those in force, the engine's own among them.
3: a ``no_op`` is a record.
"""

FIRST_FORMAT = 1
NEWEST_FORMAT = 3
# From which format on settings that are in force are written down.
IN_FORCE_FORMAT = 2
# From which format on an idle log gets records that say nothing.
NO_OP_FORMAT = 3
