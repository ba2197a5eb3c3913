"""Which version of the rules decides a log.

A job's claim brings it along, and it stays in force until the next one. It goes up when events that are on some bus
by now would be decided otherwise: what was recorded by the rules of before must come out as it did.

1: the clock is the greatest ``time_ms`` of any event so far.
2: only the engine's own events move the clock, and are known by their claim; times ahead of their entry are refused.
   Settings, and the replicas of a topic, have limits that every bus can carry.
   A setting is written as Kafka reads it: neither 1.0 for 1 nor 1 for true.
   A deletion waits for no broker behind a gateway that is away, and says who it waits for.
   Behind a gateway no partition is made that nobody could lead.
"""

FIRST_RULES = 1
NEWEST_RULES = 2
# From here on nothing is decided that a bus could not carry.
BOUNDED_RULES = 2
# From here on settings are written as Kafka reads them.
PLAIN_RULES = 2
# From which version on no broker of Kafka 4 is awaited that will remove by itself what it holds.
STRAYS_RULES = 2
# From which version on brokers of Kafka 4 are told of no topic that lacks a partition.
LED_RULES = 2
