// What is behind a partition, a topic or a broker, drawn into the panel at the side.

import { drawAway, loss, make, replicas, row, tags } from "./lists.js";
import { leaderOf, moment, number, plural, reason, told } from "./words.js";

const listed = (facts) => make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

function table(rows, gone) {
  const heads = ["Partition", "Problem", "Leader", "Replicas"].map((head) => make("th", { scope: "col" }, head));
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows.map((one) => row(one, gone))));
}

export function drawPartition(at, answer) {
  const row = answer.row ?? answer.decisions.find((one) => one.kind === "leader_and_isr");
  const facts = row
    ? [["Leader", leaderOf(row)], ["Leader epoch", number(row.leader_epoch)], ["Replicas", make("span", {}, ...replicas({ replicas: row.replicas ?? [], isr: row.isr ?? [], leader: row.leader }, answer.gone))]]
    : [];
  if (answer.row) facts.unshift(["Problem", make("span", {}, ...tags(answer.row.problems))]);
  if (answer.row?.adding?.length) facts.push(["Adding", answer.row.adding.join(", ")]);
  if (answer.row?.removing?.length) facts.push(["Removing", answer.row.removing.join(", ")]);
  const children = [make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))];
  if (answer.explanation) {
    const { summary, steps } = answer.explanation;
    const lines = steps.map((step) => make("li", {}, make("time", {}, `${moment(step.time_ms)} · event ${number(step.seq)}${step.times > 1 ? ` · ${step.times} times` : ""}`), ...step.sentences.map((one) => make("p", {}, one))));
    children.push(make("h3", {}, "Why it is as it is"), ...summary.map((line) => make("p", {}, line)), make("ol", { className: "story" }, ...lines));
  } else {
    if (answer.why_not) children.push(make("h3", {}, answer.why_not));
    const lines = answer.decisions.map((one) => {
      const [, became] = told(one);
      return make("li", { className: one.lane }, make("time", {}, `${moment(one.time_ms)} · event ${number(one.seq)}`),
        `${became}, because ${reason(one.reason)}${one.principal ? `, by ${one.principal}` : ""} `, one.unclean ? make("span", { className: "tag bad" }, "unclean") : null);
    });
    children.push(make("h3", {}, lines.length ? "Its last decisions, newest first" : "No decision about it can be read. There is no such partition, or its last change was long ago."), make("ol", { className: "story" }, ...lines));
  }
  at.replaceChildren(...children);
}

export function drawTopic(at, answer) {
  const settings = Object.entries(answer.config).map(([name, value]) => `${name}=${value}`).join(", ");
  const facts = [["State", answer.state], ["Partitions", number(answer.partitions)], ["Settings", settings || "none of its own"]];
  const left = answer.partitions - answer.rows.length;
  const more = left > 0 ? [make("p", { className: "hint" }, `${plural(left, "more partition")}. Find one by its name.`)] : [];
  at.replaceChildren(listed(facts), make("h3", {}, "Its partitions"), table(answer.rows, answer.gone), ...more);
}

export function drawBroker(at, broker, cluster, groups, nowMs) {
  const one = cluster.brokers.find((each) => each.broker === broker);
  if (!one) {
    at.replaceChildren(make("p", {}, "No such broker is registered, or it is not among those that are shown."));
    return;
  }
  const away = make("span", { className: "away", "data-since": one.since_ms, "data-heard": one.heard_ms, "data-reason": one.reason });
  const facts = [
    ["State", make("span", {}, one.state.replace("_", " "), away)], ["Rack", one.rack ?? "none"],
    ["Leads", `${plural(one.leaders, "partition")}, and should lead ${number(one.preferred)}`],
    ["Replicas", `${number(one.replicas)}, ${number(one.out_of_sync)} out of sync`],
    ["Its loss", [loss(one.lost), plural(one.lost.leaders_moved, "leader moved", "leaders moved")].filter(Boolean).join(", ")],
  ];
  const rows = cluster.rows.filter((each) => each.replicas.includes(broker));
  const lines = groups.filter(({ first }) => first.kind === "broker" && first.broker === broker).map(({ first }) =>
    make("li", { className: first.lane }, make("time", {}, `${moment(first.time_ms)} · event ${number(first.seq)}`), `${told(first)[1]}, because ${reason(first.reason)}`));
  at.replaceChildren(
    listed(facts),
    make("p", { className: "hint" }, "What if it dies? ", make("code", {}, cluster.observed ? `isrflow whatif --kill ${broker}` : `isrflow brokers fence ${broker} --dry-run`)),
    make("h3", {}, rows.length ? "Partitions at risk with a replica on it" : "None of the partitions at risk that are shown has a replica on it"),
    ...(rows.length ? [table(rows, cluster.gone)] : []),
    make("h3", {}, lines.length ? "Its last decisions, newest first" : "No decision on it is among the last ones"), make("ol", { className: "story" }, ...lines),
  );
  drawAway(at, nowMs);
}
