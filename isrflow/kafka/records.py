"""How decisions are written as records of a Kafka topic."""

import struct

DECISION_KEY = struct.Struct(">qq")
# A header of each record of decisions that names the decision before it, for readers that find that one removed.
PREVIOUS = "previous"
