"""The formats of the metadata log that gateways write.

The records of a decision in that log never change, so writing other or more records needs a new format. Each gateway
says which format it can write. The decision that names the quorum's leader also names the format from there on: the
newest one that all live gateways can write.

1: the first one. A ``quorum`` decision without a format has it.
2: the cluster's settings that brokers act on are those in force, including the engine's own.
3: a ``no_op`` becomes a record.
4: ACLs become records.
5: metadata entities become records.
6: replicas are in log directories, of which a broker may have several.
7: delegation tokens become records.
8: a log begins with the levels of the metadata version that was chosen for it.
9: the voters of the quorum become control records.
10: a log may begin with ``streams.version``.
11: a setting of brokers that is set to the value that it has becomes a record.
"""

FIRST_FORMAT = 1
NEWEST_FORMAT = 11
# From this format on, the settings in force are written.
IN_FORCE_FORMAT = 2
# From this format on, an idle log gets empty records.
NO_OP_FORMAT = 3
# From this format on, there are ACLs.
ACL_FORMAT = 4
# From this format on, there are metadata entities.
ENTITY_FORMAT = 5
# From this format on, replicas are in log directories.
DIRECTORY_FORMAT = 6
# From this format on, there are delegation tokens.
TOKEN_FORMAT = 7
# From this format on, the metadata version can be chosen and raised.
LEVEL_FORMAT = 8
# From this format on, the log has the voters of the quorum.
VOTERS_FORMAT = 9
# From this format on, a log may begin with streams groups.
STREAMS_FORMAT = 10
# From this format on, brokers are told of a setting that is set again.
SET_AGAIN_FORMAT = 11
