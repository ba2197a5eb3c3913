"""The limits of both client libraries on a bus on Kafka: how long they wait, and how much they send and read."""

REQUEST_TIMEOUT_S = 20.0
# The topics' ``max.message.bytes`` too (``bus.kafka.topics``).
MESSAGE_BYTES_MAX = 16 * 1024 * 1024
# For a read that only the number of records bounds.
ANY_BYTES = 2**62
# A topic's last offset may be that of a transaction's marker. So a reader goes back from the end by this many offsets
# to find the newest record, and in each further step by ``STEP_BACK_TIMES`` as many.
FIRST_STEP_BACK = 2
STEP_BACK_TIMES = 16
