// Numbers, times and decisions in words.

const NUMBER = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

// In the order of the engine's counts.
export const LANES = {
  unclean: "unclean election", violations: "violation", elections: "election", isr: "ISR change", brokers: "broker change",
  divergences: "divergence", other: "other",
};
// Only a cluster that is observed has these.
export const OBSERVED_LANES = ["violations", "divergences"];
export const PROBLEMS = {
  offline: ["offline", "bad"], under_min_isr: ["under min ISR", "bad"], one_failure_from_offline: ["one failure from offline", "warn"],
  at_min_isr: ["at min ISR", "warn"],
  under_replicated: ["under-replicated", "warn"],
  recovering: ["recovering", "warn"], reassigning: ["reassigning", ""], deleting: ["being deleted", ""],
};

export const ROLES = {
  deciding: "This engine elects the leaders and changes the ISRs.", standby: "This engine takes over when the other one stops.",
  starting: "This engine does not decide yet.", stopping: "This engine no longer decides.",
  observing: "Kafka's own controllers lead this cluster. isrflow reads what they did, and explains it.",
};

// What the head says of an engine that has not decided yet.
export const WAITS = {
  standby: "Another engine decides. Its page has the time line and the last decisions.",
  starting: "The engine starts. It decides in some seconds.",
};

// Why what the page shows may be old.
export function whyOld({ isSilent, isUnheard, since }, { role, ready }) {
  if (isSilent) return `Nothing has been heard from the engine since ${since}: it hangs, or the way to it is cut.`;
  if (isUnheard) return `Nothing has been observed since ${since}: 'isrflow shadow run' has stopped, or reaches no controller.`;
  if (role !== "deciding") return `No engine has decided anything since ${since}.`;
  if (!ready) return `The engine has decided nothing since ${since}.`;
  return `The page has not yet read what the engine has decided since ${since}.`;
}

const REASONS = {
  CONTROLLER_STARTED: "a controller started", BROKER_REGISTERED: "it registered", BROKER_RESTARTED: "it restarted",
  BROKER_UNFENCED: "it asked to serve", BROKER_SESSION_EXPIRED: "it fell silent", BROKER_CONNECTION_LOST: "its connection was lost",
  BROKER_ASKED_FENCE: "it asked to be fenced", BROKER_UNREGISTERED: "it was unregistered", CONTROLLED_SHUTDOWN: "a broker is shutting down",
  TOPIC_CREATED: "the topic was created", TOPIC_DELETED: "the topic is deleted", PARTITIONS_CREATED: "partitions were added",
  LEADER_FENCED: "its leader was fenced", ELIGIBLE_ELECTION: "no in-sync replica was left, and this one has every committed record", LEADER_RETURNED: "a replica that may lead came back", REPLICA_FENCED: "a replica was fenced",
  REPLICA_ONLINE: "a replica is online again", UNCLEAN_ELECTION: "no in-sync replica was left", PREFERRED_ELECTION: "its preferred leader was asked for",
  LOG_COMPLETE: "its log has every committed record", LOG_ELECTION: "its log is the most complete one",
  LEADER_BALANCE: "leaders are balanced", REASSIGNMENT: "replicas are reassigned", ISR_SHRUNK: "the leader removed a replica that lags",
  ISR_EXPANDED: "the leader added a replica that caught up", ISR_ALTERED: "the leader changed it", LEADER_RECOVERED: "the leader recovered",
  GATEWAY_STARTED: "a gateway started", GATEWAY_SILENT: "a gateway fell silent", GATEWAY_STOPPED: "a gateway stopped",
  GATEWAY_UNHEARD: "brokers did not reach the gateway that led",
  CONFIG_CHANGED: "a setting changed", REQUEST_DONE: "it was requested", REQUEST_REFUSED: "the request cannot be granted",
  MALFORMED: "the event is malformed", TIME_AHEAD: "its time is ahead", UNKNOWN_BROKER: "the broker is not registered",
  LOG_DIR_FAILED: "a log directory failed", LOG_DIRS_CORDONED: "other log directories are cordoned", LOG_DIR_ASSIGNED: "a broker said where its replica is",
  LOG_LEFT_BEHIND: "its last in-sync replica came back without its log",
  TOPIC_ADOPTED: "the topic was taken over", ACLS_CHANGED: "it was requested", ENTITY_CHANGED: "it was requested", LEVEL_RAISED: "it was requested", TOKEN_EXPIRED: "its time is over",
  OBSERVATION_BEGAN: "the observation began", RECORDS_MISSED: "records were missed", BROKER_FENCED: "it fell silent or was stopped",
  CONTROLLER_CHANGED: "another controller is active", OBSERVED: "it was observed", RULES_DIFFER: "the rules differ",
  INVARIANT_VIOLATED: "no controller may do that", SHADOW_REFUSED: "nothing is led on a shadow",
  UNKNOWN_CLAIM: "no job claimed that epoch", INVARIANT_BROKEN: "an invariant would break", RULES_FAILED: "a rule failed",
};

export const number = (value) => NUMBER.format(value);
export const clock = (ms) => CLOCK.format(ms);
export const moment = (ms) => DAY.format(ms);
// With its day, unless it was within the last hours.
export const time = (ms, nowMs) => (nowMs - ms < 43_200_000 ? clock(ms) : moment(ms));
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
export const reason = (name) => REASONS[name] ?? name.toLowerCase().replaceAll("_", " ");
export const leaderOf = (one) => (one.leader < 0 ? "none" : String(one.leader));

export function age(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86_400)} days`;
}

function entity(one) {
  const names = Object.entries(one.names ?? {}).map(([part, name]) => `${part} ${name ?? "(default)"}`);
  return [one.entity_type.replaceAll("_", " "), names.length ? `of ${names.join(", ")}` : ""].filter(Boolean).join(" ");
}

// What was decided: the thing, and what became of it.
export function told(one) {
  const partition = one.topic ? `${one.topic}-${one.partition}` : "";
  switch (one.kind) {
    case "leader_and_isr":
      return [partition, `${one.leader < 0 ? "no leader" : `leader ${one.leader}, epoch ${one.leader_epoch}`}, ISR ${(one.isr ?? []).join(", ") || "none"}`];
    case "broker": return [`broker ${one.broker}`, one.state.replace("_", " ")];
    case "topic": return [`topic ${one.topic}`, one.state];
    case "stop_replica": return [partition, `${one.delete ? "is removed from" : "stops on"} broker ${(one.to ?? []).join(", ")}`];
    case "config": return [`settings of ${one.entity}${one.name ? ` ${one.name}` : ""}`, "changed"];
    case "answer": return [one.request, `refused: ${one.error}`];
    case "rejected": return ["an event", `rejected: ${[one.field, one.message].filter(Boolean).join(": ")}`];
    case "level": return ["the level", `is ${one.level}`];
    case "acls": return ["ACLs", "changed"];
    case "entity": return [entity(one), one.reason === "TOKEN_EXPIRED" ? "removed" : "changed"];
    case "quorum": return [`${one.reason === "CONTROLLER_CHANGED" ? "controller" : "gateway"} ${one.voter}`, "leads the metadata quorum"];
    case "divergence": return [partition, `has ${one.field} ${[one.observed].flat().join(", ")}, by the rules ${[one.predicted].flat().join(", ")}`];
    case "violation": return [partition, `violation: ${one.message}`];
    default: return [one.kind, ""];
  }
}
