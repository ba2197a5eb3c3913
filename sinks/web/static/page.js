// The page: receives what the engine sends, draws it, and reacts to the mouse and the keyboard.

import { Timeline } from "./charts.js";
import { Freshness } from "./freshness.js";
import { drawAway, drawBrokers, drawDecisions, drawDetail, drawRows, drawTiles, make } from "./lists.js";
import { LANES, ROLES, WAITS, age, moment, number, plural, time, whyOld } from "./words.js";

const el = (id) => document.getElementById(id);
const state = { status: null, cluster: null, past: null, old: null, link: "", offsetMs: 0, newestSeq: 0, asks: false };
const freshness = new Freshness();

// ---- what the engine sends ----

// A browser gives up a stream that is refused, so the page opens another one after this time.
const AGAIN_MS = 5_000;
const NO_ANSWER = "The engine does not answer. The page tries again.";
const takers = new Map();
const on = (name, take) => takers.set(name, take);

function connect() {
  const source = new EventSource("/page/events");
  for (const [name, take] of takers) source.addEventListener(name, (event) => take(JSON.parse(event.data)));
  source.onopen = () => linked("");
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) refused();
    else linked(NO_ANSWER);
  };
}

async function refused() {
  setTimeout(connect, AGAIN_MS);
  linked("The engine serves too many pages at the moment. This one tries again.");
  const answer = await fetch("/page/icon.svg").catch(() => null);
  // The session has ended, so the page asks for the token after a reload.
  if (answer?.status === 401) location.reload();
  if (!answer) linked(NO_ANSWER);
}

// What is wrong with the connection.
function linked(text) {
  state.link = text;
  drawFreshness();
}

on("beat", (beat) => {
  freshness.take(beat);
  // All times on the page are those of the engine's clock.
  state.offsetMs = beat.now_ms - Date.now();
  drawFreshness();
});
on("status", (status) => {
  state.status = status;
  timeline.allow(status.has_past);
  drawStatus();
});
on("cluster", (cluster) => {
  state.cluster = cluster;
  if (!state.past) drawCluster(cluster);
});
on("decisions", (sent) => {
  const newest = state.newestSeq;
  state.sent = sent;
  state.newestSeq = sent.groups[0]?.first.seq ?? 0;
  drawDecisions(el("decisions"), el("decisions-text"), sent, newest, state.status?.role);
  dimLater();
});

// Decisions after the moment that is shown stay in the list, but pale.
function dimLater() {
  for (const line of el("decisions").children) line.classList.toggle("later", state.past !== null && Number(line.dataset.seq) > state.past.seq);
}
on("timeline", (sent) => timeline.take(sent));
connect();

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

function drawStatus() {
  const status = state.status;
  if (!status) return;
  const stopped = state.old?.isSilent ? "not heard" : state.old && status.role === "deciding" && !status.ready ? "not deciding" : "";
  const look = stopped ? "bad" : status.ready ? "good" : status.role === "deciding" ? "bad" : "warn";
  el("role").className = `pill ${look}`;
  // A screen reader reads it out when it changes.
  if (el("role").textContent !== (stopped || status.role)) el("role").textContent = stopped || status.role;
  el("role").title = stopped ? "" : ROLES[status.role] ?? "";
  const bold = (text) => make("b", {}, text);
  const waits = WAITS[status.role];
  if (waits) el("facts").replaceChildren(waits);
  else el("facts").replaceChildren(
    "controller epoch ", bold(number(status.controller_epoch)), "  ·  event ", bold(number(status.decided_seq)),
    "  ·  last commit ", bold(freshness.ageMs === null ? "none yet" : `${age(freshness.ageMs)} ago`),
    status.lag_events > 50 ? `  ·  ${plural(status.lag_events, "event")} behind` : "",
    status.why.length && !state.old ? `  ·  ${status.why.join("; ")}` : "",
  );
  const offline = state.cluster?.problems.offline;
  const first = stopped || (offline ? `${number(offline)} offline` : "");
  document.title = first ? `(${first}) isrflow` : "isrflow";
}

const engineMs = () => Date.now() + state.offsetMs;
// The engine's time, or the moment of the past that is shown.
const shownMs = () => state.past?.clock_ms ?? engineMs();

function drawCluster(cluster) {
  const isOld = state.old !== null && !state.past;
  drawTiles(el("tiles"), cluster, isOld);
  drawBrokers(el("brokers"), el("brokers-text"), cluster, isOld);
  drawAway(el("brokers"), shownMs());
  drawRows(el("rows"), el("calm"), el("risk-text"), cluster, state.past ? "past" : state.old ? "old" : "now", state.old?.since);
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
  document.body.classList.add("past");
  el("past-text").textContent = `The cluster as it was at ${moment(ms)}, after event ${number(answer.seq)}.`;
  drawCluster(answer.cluster);
  dimLater();
}

function goLive() {
  state.past = null;
  clearTimeout(due);
  document.body.classList.remove("past");
  el("past").hidden = true;
  if (state.cluster) drawCluster(state.cluster);
  dimLater();
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

// ---- one partition ----

async function open(topic, partition) {
  const name = `${topic}-${partition}`;
  const then = state.past;
  el("detail-title").textContent = name;
  el("detail-body").replaceChildren(make("p", { className: "hint" }, "Looking …"));
  if (!el("detail").open) el("detail").showModal();
  const answer = await fetched(`/page/partition?topic=${encodeURIComponent(topic)}&partition=${partition}${then ? `&seq=${then.seq}` : ""}`);
  // These facts are about the newest state, so they are not shown for the past.
  if (then && answer.explanation) Object.assign(answer, { decisions: [], row: null });
  if (el("detail-title").textContent !== name) return;
  if (answer.error) el("detail-body").replaceChildren(make("p", {}, answer.error));
  else drawDetail(el("detail-body"), answer);
}

document.addEventListener("click", (event) => {
  const named = event.target.closest("[data-topic]");
  if (named) open(named.dataset.topic, Number(named.dataset.partition));
});
el("close").addEventListener("click", () => el("detail").close());
el("detail").addEventListener("click", (event) => event.target === el("detail") && el("detail").close());
el("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const found = /^(.+)-([0-9]+)$/.exec(el("find").partition.value.trim());
  if (found) open(found[1], Number(found[2]));
  else el("find").partition.setCustomValidity("a topic, a dash and a number: orders-0");
  el("find").partition.reportValidity();
});
el("find").partition.addEventListener("input", () => el("find").partition.setCustomValidity(""));

// ---- keys, theme, range ----

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    el("find").partition.focus();
  } else if (event.key === "l" || event.key === "L") timeline.choose(null);
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.matches("#rows button, #decisions button")) {
    const all = [...event.target.closest("tbody, ol").querySelectorAll("button")];
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
  if (!state.status) return;
  drawFreshness();
  drawStatus();
  timeline.tick(engineMs());
  drawAway(el("brokers"), shownMs());
}, 500);
