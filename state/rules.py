"""Which version of the rules decides a log.

A job's claim brings it along, and it stays in force until the next one. It goes up when events that are on some bus
by now would be decided otherwise: what was recorded by the rules of before must come out as it did.

1: the clock is the greatest ``time_ms`` of any event so far.
2: only the engine's own events move the clock, and are known by their claim; times ahead of their entry are refused.
   Settings, and the replicas of a topic, have limits that every bus can carry.
   A setting is written as Kafka reads it: neither 1.0 for 1 nor 1 for true.
   A deletion waits for no broker behind a gateway that is away, and says who it waits for.
   Behind a gateway no partition is made that nobody could lead.
   Behind a gateway a broker has its id, and its log directories, to itself while its session is valid.
   Where nobody led only replicas that are online are told of the next leader. A high watermark is said again
   that a leader has grown to which came back with less.
   A quorum that was not heard for long goes on in an epoch that is further on by as many seconds.
   Brokers of Kafka 4 are told of the settings of the cluster that they act on.
3: a quorum that was put back from a backup of any age goes on in an epoch that is further on than those that were lost,
   before anything is decided that comes to a record.
"""

FIRST_RULES = 1
NEWEST_RULES = 3
# From which version on only the engine's own events move the clock.
ENGINE_CLOCK_RULES = 2
# From here on nothing is decided that a bus could not carry.
BOUNDED_RULES = 2
# From here on settings are written as Kafka reads them.
PLAIN_RULES = 2
# From which version on no broker of Kafka 4 is awaited that will remove by itself what it holds.
STRAYS_RULES = 2
# From which version on brokers of Kafka 4 are told of no topic that lacks a partition.
LED_RULES = 2
# From which version on a broker behind a gateway is no longer replaced by whoever registers under its id.
OWN_ID_RULES = 2
# From which version on an election where nobody led is told to replicas that are online alone.
ONLINE_RULES = 2
# From which version on a high watermark is said again that a leader with less has grown to.
AGAIN_RULES = 2
# From which version on a quorum that was put back from a backup repeats none of its epochs.
UNREPEATED_RULES = 2
# From which version on that holds for a backup of any age, and begins with the claim.
ANY_BACKUP_RULES = 3
# From which version on the engine's own settings are said to brokers, where gateways can write them down.
TOLD_RULES = 2
