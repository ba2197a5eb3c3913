// The page: receives what the engine sends, draws it, and reacts to the mouse and the keyboard.

import { Timeline } from "./charts.js";
import { Freshness } from "./freshness.js";
import { drawBroker, drawPartition, drawTopic } from "./detail.js";
import { drawAway, drawBrokers, drawDecisions, drawRacks, drawRows, drawTiles, make } from "./lists.js";
import { Search } from "./search.js";
import { Stream } from "./stream.js";
import { LANES, OBSERVED_LANES, ROLES, WAITS, age, moment, number, plural, time, whyOld } from "./words.js";

const el = (id) => document.getElementById(id);
const state = { status: null, cluster: null, past: null, old: null, link: "", offsetMs: 0, newestSeq: 0, asks: false, opened: null, followed: false };
const freshness = new Freshness();

// ---- what the engine sends ----

const takers = new Map();
const on = (name, take) => takers.set(name, take);

// What is wrong with the connection.
function linked(text) {
  state.link = text;
  drawFreshness();
}

on("beat", (beat) => {
  freshness.take(beat);
  // All times on the page are those of the engine's clock.
  state.offsetMs = beat.now_ms - Date.now();
  // A cluster in which nothing happens is observed all the same.
  if (state.cluster) state.cluster.observed = beat.observed;
  drawFreshness();
});
on("status", (status) => {
  state.status = status;
  timeline.allow(status.has_past);
  el("cluster-name").textContent = status.cluster_name;
  el("cluster-name").hidden = !status.cluster_name;
  drawStatus();
  if (state.cluster && !state.past) drawCluster(state.cluster);
});
on("cluster", (cluster) => {
  state.cluster = cluster;
  document.body.classList.toggle("observed", cluster.observed !== null);
  timeline.end = cluster.observed ? "newest" : "now";
  timeline.tick(engineMs());
  drawStatus();
  if (!state.past) drawCluster(cluster);
  // What the address names is shown once there is something to show.
  if (!state.followed) follow();
});
on("decisions", (sent) => {
  const newest = state.newestSeq;
  state.sent = sent;
  if (state.cluster && !state.past) drawCluster(state.cluster);
  state.newestSeq = sent.groups[0]?.first.seq ?? 0;
  drawDecisions(el("decisions"), el("decisions-text"), sent, newest, state.status?.role);
  dimLater();
});

// Decisions after the moment that is shown stay in the list, but pale.
function dimLater() {
  for (const line of el("decisions").children) line.classList.toggle("later", state.past !== null && Number(line.dataset.seq) > state.past.seq);
}
on("timeline", (sent) => timeline.take(sent));
const stream = new Stream(takers, freshness, linked);

function drawFreshness() {
  const former = state.old;
  const old = state.status ? freshness.old : null;
  // Two clocks and a few milliseconds on the way must not make another second of it.
  if (old && former && Math.abs(old.sinceMs - former.sinceMs) < 1_000) old.sinceMs = former.sinceMs;
  state.old = old && { ...old, since: time(old.sinceMs + state.offsetMs, engineMs()) };
  const known = state.cluster ? "Below is what the page last knew." : "";
  const text = [state.link, old ? whyOld(state.old, state.status) : "", state.link || old ? known : ""].filter(Boolean).join(" ");
  // A screen reader would read out a text that is set again.
  if (el("trouble").textContent !== text) el("trouble").textContent = text;
  el("trouble").hidden = !text;
  document.body.classList.toggle("old", old !== null);
  timeline.known(state.status?.role === "standby", state.old?.since ?? null);
  if (former?.since === state.old?.since) return;
  if (state.cluster && !state.past) drawCluster(state.cluster);
  drawStatus();
}

// Whether an engine that should decide does not.
const isUndecided = ({ role, ready }) => state.old !== null && (role === "observing" || (role === "deciding" && !ready));

function drawStatus() {
  const status = state.status;
  if (!status) return;
  const stopped = state.old?.isSilent ? "not heard" : state.old?.isUnheard ? "not observing" : isUndecided(status) ? "not deciding" : "";
  const observed = state.cluster?.observed;
  const role = observed && status.role === "deciding" ? "observing" : status.role;
  const look = stopped ? "bad" : status.ready || role === "observing" ? "good" : status.role === "deciding" ? "bad" : "warn";
  el("role").className = `pill ${look}`;
  // A screen reader reads it out when it changes.
  if (el("role").textContent !== (stopped || role)) el("role").textContent = stopped || role;
  el("role").title = stopped ? "" : ROLES[role] ?? "";
  el("measured").hidden = status.role === "observing";
  const bold = (text) => make("b", {}, text);
  const waits = WAITS[status.role];
  if (observed) el("facts").replaceChildren(
    "observing cluster ", bold(observed.cluster_id), "  ·  until offset ", bold(number(observed.offset)), " of its log, ", bold(moment(observed.time_ms)), ...lag(observed));
  else if (waits) el("facts").replaceChildren(waits, status.phase ? ` It is ${status.phase}.` : "");
  else el("facts").replaceChildren(
    "controller epoch ", bold(number(status.controller_epoch)), "  ·  event ", bold(number(status.decided_seq)),
    "  ·  last commit ", bold(freshness.ageMs === null ? "none yet" : `${age(freshness.ageMs)} ago`),
    status.lag_events > 50 ? `  ·  ${plural(status.lag_events, "event")} behind` : "",
    status.why.length && !state.old ? `  ·  ${status.why.join("; ")}` : "",
  );
  const offline = state.cluster?.problems.offline;
  const first = stopped || (offline ? `${number(offline)} offline` : "");
  const name = [status.cluster_name, "isrflow"].filter(Boolean).join(" · ");
  document.title = first ? `(${first}) ${name}` : name;
}

// How far the observation is behind. A log that was recorded has none.
const lag = ({ heard_ms, time_ms }) => (heard_ms < 0 ? [] : ["  ·  lag ", make("b", {}, `${number(Math.max(0, heard_ms - time_ms))} ms`)]);

// The time of an observed cluster stands still while nothing happens there.
const engineMs = () => state.cluster?.observed?.time_ms ?? Date.now() + state.offsetMs;
// The engine's time, or the moment of the past that is shown.
const shownMs = () => state.past?.clock_ms ?? engineMs();

function drawCluster(cluster) {
  const isOld = state.old !== null && !state.past;
  drawTiles(el("tiles"), cluster, isOld, state.past ? {} : counts(cluster));
  drawBrokers(el("brokers"), el("brokers-text"), cluster, isOld);
  drawAway(el("brokers"), shownMs());
  drawRacks(el("racks"), cluster.racks);
  drawRows(el("rows"), el("calm"), el("risk-text"), cluster, state.past ? "past" : state.old ? "old" : "now", state.old?.since);
}

// What is counted of all time that the page knows.
function counts(cluster) {
  if (!cluster.observed) return { unclean: state.status?.unclean ?? 0 };
  return Object.fromEntries(["unclean", ...OBSERVED_LANES].map((lane) => [lane, state.sent?.totals[lane] ?? 0]));
}

// ---- the past ----

const timeline = new Timeline(el("timeline"), el("timeline-text"), (ms) => (ms === null ? goLive() : goTo(ms)));
let due = null;

function goTo(ms) {
  clearTimeout(due);
  el("past-text").textContent = `Looking for the cluster as it was at ${moment(ms)} …`;
  el("past").hidden = false;
  due = setTimeout(() => ask(ms), 120);
}

// One question at a time: while the handle is dragged, the page asks only about the time where it stops.
async function ask(ms) {
  if (state.asks) return;
  state.asks = true;
  const answer = await fetched(`/page/past?time_ms=${Math.round(ms)}`);
  state.asks = false;
  if (timeline.chosenMs === null) return;
  if (timeline.chosenMs !== ms) return ask(timeline.chosenMs);
  if (answer.error) {
    el("past-text").textContent = `Cannot show ${moment(ms)}: ${answer.error}`;
    return;
  }
  state.past = answer;
  const { observed } = answer.cluster;
  document.body.classList.add("past");
  el("past-text").textContent = `The cluster as it was at ${moment(ms)}, after event ${number(answer.seq)}${observed ? `, which is at offset ${number(observed.offset)} of its log` : ""}.`;
  drawCluster(answer.cluster);
  dimLater();
  link();
}

function goLive() {
  state.past = null;
  clearTimeout(due);
  document.body.classList.remove("past");
  el("past").hidden = true;
  if (state.cluster) drawCluster(state.cluster);
  dimLater();
  link();
}

// The engine gives up earlier, unless it hangs.
const ANSWER_MS = 60_000;

async function fetched(url) {
  try {
    return await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })).json();
  } catch {
    return { error: "the engine does not answer" };
  }
}

el("live").addEventListener("click", () => timeline.choose(null));

// ---- one partition, topic or broker ----

// Opens a partition, or without a number its whole topic.
async function open(topic, partition = null) {
  const name = partition === null ? topic : `${topic}-${partition}`;
  const then = state.past;
  show(partition === null ? { topic: name } : { partition: name }, name);
  const at = then ? `&seq=${then.seq}` : "";
  const what = `topic=${encodeURIComponent(topic)}`;
  const answer = await fetched(partition === null ? `/page/topic?${what}${at}` : `/page/partition?${what}&partition=${partition}${at}`);
  // These facts are about the newest state, so they are not shown for the past.
  if (then && answer.explanation) Object.assign(answer, { decisions: [], row: null });
  if (el("detail-title").textContent !== name) return;
  if (answer.error) el("detail-body").replaceChildren(make("p", {}, answer.error));
  else (partition === null ? drawTopic : drawPartition)(el("detail-body"), answer);
}

function openBroker(broker) {
  show({ broker }, `broker ${broker}`);
  drawBroker(el("detail-body"), broker, state.past?.cluster ?? state.cluster, state.sent?.groups ?? [], shownMs());
}

function show(opened, title) {
  state.opened = opened;
  el("detail-title").textContent = title;
  el("detail-body").replaceChildren(make("p", { className: "hint" }, "Looking …"));
  if (!el("detail").open) el("detail").showModal();
  link();
}

document.addEventListener("click", (event) => {
  const named = event.target.closest("[data-topic], [data-broker-id]");
  if (!named) return;
  // Otherwise the line that the name stands in would open, too.
  if (named.closest("summary")) event.preventDefault();
  search.hide();
  if (named.dataset.brokerId) openBroker(Number(named.dataset.brokerId));
  else open(named.dataset.topic, named.dataset.partition === undefined ? null : Number(named.dataset.partition));
});
el("close").addEventListener("click", () => el("detail").close());
el("detail").addEventListener("click", (event) => event.target === el("detail") && el("detail").close());
el("detail").addEventListener("close", () => {
  state.opened = null;
  link();
});
const search = new Search(el("find"), el("found"), fetched, open);

// ---- the address ----

// The address names what is shown, so that it can be kept, or sent to others.
function link() {
  const named = new URLSearchParams(state.opened ?? {});
  if (state.past && timeline.chosenMs !== null) named.set("at", String(timeline.chosenMs));
  const hash = named.size ? `#${named}` : "";
  if (location.hash !== hash) history.replaceState(null, "", location.pathname + hash);
}

function follow() {
  state.followed = true;
  const named = new URLSearchParams(location.hash.slice(1));
  const partition = /^(.+)-([0-9]+)$/.exec(named.get("partition") ?? "");
  const at = Number(named.get("at"));
  if (at && at !== timeline.chosenMs) timeline.choose(at);
  if (partition) open(partition[1], Number(partition[2]));
  else if (named.get("topic")) open(named.get("topic"));
  else if (named.get("broker")) openBroker(Number(named.get("broker")));
}
window.addEventListener("hashchange", follow);

// ---- keys, theme, range ----

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    el("find").name_.focus();
  } else if (event.key === "l" || event.key === "L") timeline.choose(null);
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.matches("#rows button, #decisions button, #decisions summary, #brokers button, #found button, dialog tbody button")) {
    const list = event.target.closest("#decisions") ?? event.target.closest("tbody, ol, ul");
    const all = [...list.querySelectorAll("button, summary")].filter((one) => one.checkVisibility());
    const next = all[all.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) event.preventDefault();
    next?.focus();
  }
});

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
try {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* A browser without storage uses its own setting. */ }
el("theme").addEventListener("click", () => {
  const other = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = other;
  try { localStorage.setItem("theme", other); } catch { /* as above */ }
});

for (const button of document.querySelectorAll(".choice button")) {
  button.addEventListener("click", () => {
    for (const one of document.querySelectorAll(".choice button")) one.setAttribute("aria-pressed", String(one === button));
    timeline.show(Number(button.dataset.width));
  });
}
el("legend").replaceChildren(...Object.entries(LANES).map(([lane, text]) => make("li", { className: lane }, text)));

setInterval(() => {
  stream.look();
  if (!state.status) return;
  drawFreshness();
  drawStatus();
  timeline.tick(engineMs());
  drawAway(el("brokers"), shownMs());
}, 500);
