"""What a client of either library keeps to on a bus on Kafka: how long it waits, and how much it sends and reads."""

REQUEST_TIMEOUT_S = 20.0
# The topics' ``max.message.bytes`` too (``bus.kafka.topics``).
MESSAGE_BYTES_MAX = 16 * 1024 * 1024
# For a read that only the number of records bounds.
ANY_BYTES = 2**62
# A topic's last offset may be that of a transaction's mark. So a reader goes back from the end by so many offsets
# to find the newest record, and each further time by so many times as many.
FIRST_STEP_BACK = 2
STEP_BACK_TIMES = 16
