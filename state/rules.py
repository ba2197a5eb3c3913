"""The version of the rules that decides an event log.

A job's claim brings a version, which stays in force until the next claim. The version rises when new rules would decide
differently on events that are already on some bus, because a replay must repeat what the older rules decided.

1: the clock is the greatest ``time_ms`` of any event so far.
2: only the engine's own events move the clock, and their claim identifies them. Events too far ahead of their time of
   entry are refused.
   Settings and the replicas of a topic have limits, so that every bus can carry them.
   Settings are written as Kafka reads them: neither 1.0 for 1 nor 1 for true.
   A deletion does not wait for a broker behind a gateway that is away, and says which brokers it waits for.
   Behind a gateway, no partition is created that no replica could lead.
   Behind a gateway, a broker has its id and its log directories to itself while its session is valid.
   Where a partition had no leader, only online replicas are told of the next one. A high watermark that a leader had
   lost is decided again once the leader has regained it.
   After a long silence the quorum epoch rises by one for each second of the silence.
   Brokers of Kafka 4 are told of the cluster's settings that they act on.
3: a quorum restored from a backup of any age goes on in an epoch beyond those that were lost, before any decision
   becomes a record.
4: settings are checked when they are changed as they are when an engine starts: a name that misspells a setting of the
   rules is refused, and so are values that cannot work together.
   An election names the replicas that it passed over, and why.
5: a decision names the principal of the admin whose request caused it. Requests about ACLs are carried out.
6: metadata entities are kept: client quotas, settings of groups, subscriptions to clients' metrics, SCRAM
   credentials, levels of features.
7: a broker behind a gateway may have several log directories. Where one fails, only the replicas in it go offline.
   A topic that another controller led is taken over, and an ISR that a leader wrote into ZooKeeper counts.
8: replicas that a reassignment removed are assigned again if only they can lead with the ISR that a leader wrote into
   ZooKeeper.
9: delegation tokens are kept, and those that have expired are removed.
10: the metadata version may be chosen before the metadata log begins, and be raised. A broker that does not support a
   level in force cannot register.
11: the voters of the metadata quorum may be kept, so that brokers find them in the metadata log.
12: ``streams.version`` is a feature with levels.
13: a leader may ask for the ISRs of many partitions in one event.
14: a broker may report where the logs of many of its replicas end in one event.
15: delegation tokens that expire together are removed together, and take no room from other metadata entities.
   A heartbeat may report a failed log directory, and in the same event ask to be fenced, to be unfenced or to shut
   down. A leader that is elected from an ISR that was written into ZooKeeper has recovered. A lost connection counts
   from the first report of it. A gateway that can no longer write the metadata log is refused. The pattern of a
   subscription to clients' metrics has few groups. Brokers behind gateways are told of a setting of theirs that is set
   to the value that it has.
16: only gateways compare a registering broker with the levels in force, because one shard alone keeps these.
   Behind a gateway, fenced brokers get replicas where too few are active, of new topics and of reassignments.
   A deletion that began without any registered broker goes on when brokers register.
   The reserved ids of log directories are Kafka's. Brokers hear of new replicas that are in no directory yet.
17: where all brokers are behind gateways, neither a deletion nor new partitions wait for reassignments.
   Where nobody could lead after a reassignment is cancelled, and its topic waits to be deleted, the deletion begins.
   A topic that is taken over has an id that brokers can read.
18: settings are read as Kafka reads them: a number may have white space around it, and a plus sign or zeros before it.
   A deletion waits for assigned replicas only, and not for those that a reassignment had removed.
   A broker that has restarted since an ISR was written into ZooKeeper leaves it, and a leader hears that a member it
   added is away.
   Where all brokers are behind gateways, a topic is gone in the event that deletes it, and brokers without a rack
   count together as one rack.
19: a topic's settings that brokers behind gateways cannot read are refused.
20: a broker may report what became of decisions about many of its replicas in one event.
"""

FIRST_RULES = 1
NEWEST_RULES = 20
# The first version of the rules in which ...
# only the engine's own events move the clock
ENGINE_CLOCK_RULES = 2
# nothing is decided that a bus could not carry
BOUNDED_RULES = 2
# settings are written as Kafka reads them
PLAIN_RULES = 2
# no deletion waits for a broker of Kafka 4 that removes stray logs by itself
STRAYS_RULES = 2
# behind a gateway, no partition is created that no replica could lead
LED_RULES = 2
# no process takes the id of a broker behind a gateway while its session is valid
OWN_ID_RULES = 2
# only online replicas are told of an election where there was no leader
ONLINE_RULES = 2
# a high watermark that a leader had lost is decided again
AGAIN_RULES = 2
# a quorum restored from a backup repeats none of its epochs
UNREPEATED_RULES = 2
# the same holds for a backup of any age, and begins with the claim
ANY_BACKUP_RULES = 3
# brokers are told of the engine's own settings, if gateways can write them
ANNOUNCING_RULES = 2
# changed settings are checked as an engine's own are
CHECKED_RULES = 4
# an election names the replicas that it passed over
EXPLAINED_RULES = 4
# decisions name the principal whose request caused them
NAMED_RULES = 5
# ACLs are kept
ACL_RULES = 5
# metadata entities are kept
ENTITY_RULES = 6
# replicas are in log directories
DIRECTORY_RULES = 7
# a topic that another controller led is taken over
ADOPTION_RULES = 7
# an ISR that a leader wrote into ZooKeeper counts
WRITTEN_ISR_RULES = 7
# a replica is assigned again if only it has what its leader wrote meanwhile
TAKEN_BACK_RULES = 8
# delegation tokens are kept
TOKEN_RULES = 9
# the metadata version is chosen and raised
LEVEL_RULES = 10
# the voters of the metadata quorum are kept
VOTERS_RULES = 11
# streams groups are a feature
STREAMS_RULES = 12
# a leader asks for many ISRs in one event
ISR_REQUEST_RULES = 13
# a broker reports many log ends in one event
LOG_ENDS_RULES = 14
# several tokens may expire at one tick, and tokens have limits of their own
EXPIRY_RULES = 15
# a heartbeat with a failed directory may ask for more
ONE_HEARTBEAT_RULES = 15
# a leader elected from a written ISR has recovered
RECOVERED_RULES = 15
# a lost connection counts from its first report
FIRST_LOSS_RULES = 15
# a gateway that can no longer write the metadata log is refused
NO_OLDER_RULES = 15
# the pattern of a subscription to clients' metrics has few groups
FEW_GROUPS_RULES = 15
# brokers are told of a setting that is set again
SET_AGAIN_RULES = 15
# registrations are decided from what all shards keep
SHARED_RULES = 16
# behind a gateway, registered brokers get replicas, and not only active ones
REGISTERED_RULES = 16
# the reserved ids of log directories are Kafka's
UNASSIGNED_RULES = 16
# brokers that read a metadata log do not wait for reassignments
AT_ONCE_RULES = 17
# the move of a topic that is to be deleted can always be cancelled
CANCELLED_RULES = 17
# the id of a topic that is taken over is one that brokers can read
READABLE_ID_RULES = 17
# settings are read as Kafka reads their text
KAFKA_TEXT_RULES = 18
# deletions wait for assigned replicas only
ASSIGNED_ONLY_RULES = 18
# a broker that restarted after an ISR was written is not in sync
BOUNCED_RULES = 18
# with brokers of Kafka 4 only, the name of a deleted topic is free at once
NAME_FREE_RULES = 18
# with brokers of Kafka 4 only, brokers without a rack count together as one rack
RACKLESS_RULES = 18
# topics get only settings that brokers behind gateways can read
READABLE_CONFIG_RULES = 19
# a broker reports on many replicas in one event
REPORTS_RULES = 20
