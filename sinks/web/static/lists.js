// Tiles, brokers, partitions at risk and decisions, drawn from what the engine sent.
// All text is inserted as text, never as markup, because others choose the names of topics and racks.

import { LANES, PROBLEMS, age, clock, leaderOf, number, plural, reason, time, told } from "./words.js";

export function make(tag, options = {}, ...children) {
  const { className = "", ...attributes } = options;
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

// A state that may have changed meanwhile is told in the past tense.
// `counts` has how many there were, by lane: unclean elections that this engine has decided, or what was observed.
export function drawTiles(at, cluster, isOld, counts) {
  const calm = (count) => (count ? "" : " is-zero");
  const tile = (count, text, look = "") => make("div", { className: `tile${look}` }, make("b", {}, number(count)), make("span", {}, text));
  const problem = (name) => {
    const count = cluster.problems[name];
    const were = isOld ? (count === 1 ? "was " : "were ") : "";
    return tile(count, were + PROBLEMS[name][0], count && PROBLEMS[name][1] ? ` is-${PROBLEMS[name][1]}` : calm(count));
  };
  at.replaceChildren(
    tile(cluster.partitions, `${cluster.partitions === 1 ? "partition" : "partitions"} in ${plural(cluster.topics, "topic")}`),
    ...["offline", "under_min_isr", "one_failure_from_offline", "at_min_isr", "under_replicated", "reassigning"].map(problem),
    ...Object.entries(counts).map(([lane, count]) => tile(count, count === 1 ? LANES[lane] : `${LANES[lane]}s`, count ? " is-bad" : calm(0))),
  );
}

export function drawBrokers(at, text, cluster, isOld) {
  const brokers = cluster.brokers;
  const most = Math.max(1, ...brokers.map((one) => Math.max(one.leaders, one.preferred)));
  const drawn = new Map([...at.children].map((child) => [child.dataset.broker, child]));
  const children = brokers.map((one) => {
    const item = drawn.get(String(one.broker)) ?? newBroker(one.broker);
    item.className = `broker ${one.state}`;
    const [leaders, preferred] = item.querySelector(".bar").children;
    leaders.style.width = `${(100 * one.leaders) / most}%`;
    preferred.style.left = `calc(${(100 * one.preferred) / most}% - 2px)`;
    preferred.hidden = one.preferred === one.leaders || !one.preferred;
    item.querySelector(".count").textContent = number(one.leaders);
    const out = one.out_of_sync ? `, ${number(one.out_of_sync)} out of sync` : "";
    const state = make("b", {}, (isOld ? "was " : "") + one.state.replace("_", " "));
    const away = make("span", { className: "away", "data-since": one.since_ms, "data-heard": one.heard_ms, "data-reason": one.reason });
    item.querySelector(".lost").textContent = loss(one.lost) && `its loss: ${loss(one.lost)}`;
    item.querySelector(".more").replaceChildren(state, away, ` · ${plural(one.replicas, "replica")}${out}${one.rack ? ` · ${/^rack/i.test(one.rack) ? "" : "rack "}${one.rack}` : ""}`);
    return item;
  });
  at.replaceChildren(...children);
  const left = cluster.brokers_left_out ? `, ${number(cluster.brokers_left_out)} more not shown` : "";
  text.textContent = brokers.length ? `partitions led; the tick shows how many it should lead${left}` : "no broker has registered yet";
}

// Since when brokers do not serve. The engine sends the time, and the page counts how long ago that is.
export function drawAway(at, nowMs) {
  for (const away of at.querySelectorAll(".away")) {
    const { since, heard, reason: why } = away.dataset;
    if (since) away.textContent = ` for ${age(nowMs - since)}, since ${time(Number(since), nowMs)}, because ${reason(why)}`;
    else if (heard) away.textContent = `, last heard ${age(nowMs - heard)} ago, at ${time(Number(heard), nowMs)}`;
  }
}

// What the loss of a broker would cost now, beyond new leaders; empty if nothing.
export function loss(lost) {
  const costs = [[lost.offline, "offline"], [lost.refusing_writes, "refusing writes"]];
  return costs.filter(([count]) => count).map(([count, what]) => `${number(count)} ${what}`).join(", ");
}

// What the loss of each rack would cost now, the worst first.
export function drawRacks(at, racks) {
  at.hidden = !racks.length;
  const cost = (one) => [loss(one), one.leaders_moved && plural(one.leaders_moved, "new leader")].filter(Boolean).join(", ") || "nothing";
  at.replaceChildren("If a rack were lost: ", ...racks.flatMap((one, nth) => [nth ? " · " : "", make("b", {}, one.rack), `: ${cost(one)}`]));
}

function newBroker(broker) {
  const item = make("li", { className: "broker", "data-broker": broker },
    make("span", { className: "name" }, make("span", { className: "dot" }), make("button", { type: "button", "data-broker-id": broker }, `broker ${broker}`)),
    make("span", { className: "bar", "aria-hidden": "true" }, make("i"), make("u", { title: "should lead" })),
    make("span", { className: "count" }), make("span", { className: "more" }), make("span", { className: "lost" }));
  return item;
}

// `gone` has what became of dead brokers. A replica there serves no client, even if it is still in the ISR.
export function replicas(one, gone) {
  return one.replicas.flatMap((replica) => {
    const isIn = one.isr.includes(replica);
    const is = isIn && gone[replica] ? "gone" : replica === one.leader ? "leads" : isIn ? "in" : "out";
    const state = [{ leads: "leads", in: "in sync", out: "out of sync", gone: "in the ISR" }[is], gone[replica]].filter(Boolean).join(", ");
    const text = is === "gone" ? `${replica} ${gone[replica]}` : String(replica);
    // The space separates replicas when the list is copied or read aloud.
    return [make("span", { className: `replica ${is}`, title: `broker ${replica}: ${state}` }, text), " "];
  });
}

export const tags = (problems) => problems.map((problem) => make("span", { className: `tag ${PROBLEMS[problem][1]}` }, PROBLEMS[problem][0]));

export function row(one, gone) {
  const key = `${one.topic}-${one.partition}`;
  return make("tr", { "data-topic": one.topic, "data-partition": one.partition },
    make("td", {}, make("button", { type: "button", "data-key": key }, key)),
    make("td", {}, ...tags(one.problems)),
    make("td", {}, leaderOf(one)),
    make("td", {}, ...replicas(one, gone)));
}

const LEGEND = [["leads", "leads"], ["in", "in sync"], ["out", "out of sync"]];

// The texts in place of rows: for now, for the past, and for a state that may have changed meanwhile.
const CALM = {
  now: ["No partition is at risk", "has", "have"], past: ["No partition was at risk", "had", "had"],
  old: ["It is not known whether partitions are at risk", "had", "had"],
};

export function drawRows(at, calm, text, cluster, when, since) {
  const focused = document.activeElement?.dataset?.key;
  at.replaceChildren(...cluster.rows.map((one) => row(one, cluster.gone)));
  if (focused) at.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  at.parentElement.hidden = !cluster.rows.length;
  calm.hidden = cluster.rows.length > 0;
  const [calmly, one, many] = CALM[when];
  const all = cluster.partitions === 1 ? `the one partition ${one}` : `all ${number(cluster.partitions)} partitions ${many}`;
  const sentence = `${when === "old" ? `At ${since} ` : ""}${all} a leader and every replica in sync.`;
  const nothing = cluster.partitions ? sentence[0].toUpperCase() + sentence.slice(1) : "Create a topic. Its partitions appear here when they are at risk.";
  calm.replaceChildren(make("b", {}, cluster.partitions ? calmly : "No topic yet"), nothing);
  const more = cluster.at_risk - cluster.rows.length;
  const legend = LEGEND.flatMap(([is, word]) => [make("span", { className: `replica ${is}` }, word), " "]);
  const worst = more > 0 ? ` The ${number(cluster.rows.length)} worst of ${number(cluster.at_risk)}. Find any other by its name.` : "";
  text.replaceChildren(...(cluster.rows.length ? ["Replicas: ", ...legend, worst] : []));
}

// An event with at most so many decisions has a line for each kind of them.
const SINGLY_MAX = 8;

export function drawDecisions(at, text, sent, newest, role) {
  const opened = new Set([...at.querySelectorAll("details[open]")].map((one) => one.dataset.seq));
  const byEvent = Map.groupBy(sent.groups, (group) => group.first.seq);
  at.replaceChildren(...[...byEvent.values()].map((groups) => {
    const isNew = newest && groups[0].first.seq > newest;
    const decisions = groups.reduce((sum, group) => sum + group.count, 0);
    if (groups.length < 2 || decisions <= SINGLY_MAX) return groups.map((group) => make("li", lineOf(group, isNew), ...decision(group)));
    return [cause(groups, isNew, opened)];
  }).flat());
  const skipped = sent.dropped ? `, ${number(sent.dropped)} skipped because there were too many` : "";
  text.textContent = sent.groups.length ? `newest first${skipped}` : role === "standby" ? "the engine that decides has them" : "none yet";
}

const lineOf = ({ first }, isNew) => ({ className: `decision ${first.lane}${isNew ? " new" : ""}`, "data-seq": first.seq });

// What one event led to, in one line that opens. The broker's own change is the cause, if there is one.
function cause(groups, isNew, opened) {
  const seq = String(groups[0].first.seq);
  const head = groups.find((group) => group.first.kind === "broker") ?? groups.at(-1);
  const rest = groups.filter((group) => group !== head);
  const led = rest.map(({ first, count }) => `${plural(count, first.kind === "leader_and_isr" ? "partition" : first.kind.replaceAll("_", " "))} because ${reason(first.reason)}`);
  const summary = make("summary", { className: "decision" }, ...decision(head, `. It led to: ${led.join("; ")}.`));
  const details = make("details", { "data-seq": seq }, summary, make("ol", {}, ...rest.map((group) => make("li", lineOf(group, false), ...decision(group)))));
  details.open = opened.has(seq);
  return make("li", { className: `cause ${head.first.lane}${isNew ? " new" : ""}`, "data-seq": seq }, details);
}

function decision(group, also = "") {
  const one = group.first;
  const [what, became] = told(one);
  // Each partition has a leader and an ISR of its own, so the text of the first one is not that of the others.
  const apart = one.kind === "leader_and_isr";
  const more = group.count - 1;
  const others = more && !apart ? ` and ${number(more)} more` : "";
  const verb = one.kind === "broker" ? (more ? " are" : " is") : ":";
  const name = one.topic && one.partition >= 0 ? make("button", { type: "button", "data-topic": one.topic, "data-partition": one.partition }, what) : make("b", {}, what);
  const line = make("span", {}, name, `${others}${verb} ${became}`,
    make("span", { className: "why" }, `, because ${reason(one.reason)}${one.principal ? `, by ${one.principal}` : ""}${also} `, more && apart ? `(and ${plural(more, "more partition")}) ` : ""),
    one.unclean ? make("span", { className: "tag bad" }, "unclean") : null);
  return [make("time", { datetime: new Date(one.time_ms).toISOString() }, clock(one.time_ms)), make("i"), line,
    make("span", { className: "seq", title: `event ${one.seq}` }, one.reason)];
}
