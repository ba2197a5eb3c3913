// The time line: bars that count what happened, and a handle; dragging it shows the cluster as it was then.

import { LANES, clock, moment, plural } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const SPANS = [120, 300];
const KEPT = { 1000: 600, 60000: 1440 };
const TOP = 8, BOTTOM = 18, COLUMN_PX = 4;
const LANE_NAMES = Object.keys(LANES);
// How many lanes are the worst: unclean elections and violations.
const SEVERE = 2;

function shape(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

export class Timeline {
  // The function `moved` gets a time in ms, or null for now.
  constructor(at, text, moved) {
    this.at = at;
    this.text = text;
    this.moved = moved;
    this.width = 1000;
    this.buckets = { 1000: new Map(), 60000: new Map() };
    this.nowMs = Date.now();
    this.chosenMs = null;
    this.canMove = false;
    this.isStandby = false;
    // How the right end is called.
    this.end = "now";
    this.oldSince = null;
    at.addEventListener("pointerdown", (event) => this.dragged(event, true));
    at.addEventListener("pointermove", (event) => at.hasPointerCapture(event.pointerId) && this.dragged(event, false));
    at.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(at);
  }

  take(sent) {
    for (const [width, buckets] of Object.entries(sent.buckets)) {
      if (sent.all) this.buckets[width].clear();
      for (const bucket of buckets) this.buckets[width].set(bucket[0], bucket);
      while (this.buckets[width].size > KEPT[width]) this.buckets[width].delete(this.buckets[width].keys().next().value);
    }
    this.draw();
  }

  tick(nowMs) {
    if (Math.floor(nowMs / 1000) === Math.floor(this.nowMs / 1000)) return;
    this.nowMs = nowMs;
    this.draw();
  }

  // Whether the engine can show the past.
  allow(canMove) {
    if (canMove === this.canMove) return;
    this.canMove = canMove;
    this.at.classList.toggle("still", !canMove);
    this.draw();
  }

  // Takes whether another engine has the time line, and since when nothing is known; null if everything is.
  known(isStandby, oldSince) {
    if (isStandby === this.isStandby && oldSince === this.oldSince) return;
    this.isStandby = isStandby;
    this.oldSince = oldSince;
    this.draw();
  }

  show(width) {
    this.width = width;
    this.draw();
  }

  // While a cluster is young, its few minutes fill the whole width.
  get span() {
    const [first] = this.buckets[this.width].keys();
    const age = first === undefined ? 0 : (this.nowMs - first) / this.width + 5;
    return this.width * (SPANS.find((span) => span >= age && span < KEPT[this.width]) ?? KEPT[this.width]);
  }

  get from() { return this.nowMs - this.span; }

  choose(ms) {
    const chosen = ms === null || ms >= this.nowMs - this.width ? null : Math.round(ms);
    if (chosen === this.chosenMs) return;
    this.chosenMs = chosen;
    this.draw();
    this.moved(chosen);
  }

  dragged(event, first) {
    if (!this.canMove) return;
    if (first) this.at.setPointerCapture(event.pointerId);
    const box = this.at.getBoundingClientRect();
    this.choose(Math.max(this.from, this.from + (this.span * (event.clientX - box.left)) / box.width));
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 };
    if (!this.canMove || !(event.key in steps || event.key === "Home" || event.key === "End")) return;
    event.preventDefault();
    if (event.key === "End") return this.choose(null);
    if (event.key === "Home") return this.choose(this.from);
    const ms = (this.chosenMs ?? this.nowMs) + steps[event.key] * this.width * (event.shiftKey ? 10 : 1) - (this.chosenMs ? 0 : this.width);
    this.choose(Math.max(this.from, ms));
  }

  columns(pixels) {
    const count = Math.max(1, Math.min(KEPT[this.width], Math.floor(pixels / COLUMN_PX)));
    const columns = new Map();
    for (const [start, ...lanes] of this.buckets[this.width].values()) {
      const place = Math.floor(((start + this.width - this.from) / this.span) * count);
      if (place < 0) continue;
      const held = columns.get(Math.min(place, count - 1)) ?? LANE_NAMES.map(() => 0);
      columns.set(Math.min(place, count - 1), held.map((value, lane) => value + lanes[lane]));
    }
    return [count, columns];
  }

  draw() {
    const { width, height } = this.at.getBoundingClientRect();
    if (!width) return;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const floor = height - BOTTOM;
    const [count, columns] = this.columns(width);
    // Logarithms, because one event may cause 30,000 decisions and the next only one.
    const most = Math.log2(1 + Math.max(7, ...[...columns.values()].map((lanes) => lanes.reduce((a, b) => a + b, 0))));
    svg.append(shape("line", { class: "grid", x1: 0, x2: width, y1: floor + 0.5, y2: floor + 0.5 }));
    this.drawTimes(svg, width, height, floor);
    for (const [place, lanes] of columns) this.drawColumn(svg, (place * width) / count, width / count, floor, lanes, most);
    const at = this.chosenMs === null ? width - 1 : ((this.chosenMs - this.from) / this.span) * width;
    svg.append(shape("line", { class: "cursor", x1: at, x2: at, y1: TOP - 2, y2: floor }), shape("circle", { class: "knob", cx: at, cy: TOP, r: 6 }));
    this.at.replaceChildren(svg);
    this.describe(columns);
  }

  drawTimes(svg, width, height, floor) {
    const step = this.width === 1000 ? 60_000 : 3_600_000;
    const every = Math.max(1, Math.ceil((90 * this.span) / (width * step)));
    for (let ms = Math.ceil(this.from / step) * step; ms < this.nowMs; ms += step) {
      if (Math.round(ms / step) % every) continue;
      const x = ((ms - this.from) / this.span) * width;
      if (x < 22 || x > width - 40) continue;
      svg.append(shape("line", { class: "grid", x1: x, x2: x, y1: TOP, y2: floor }), shape("text", { x, y: height - 4, "text-anchor": "middle" }, clock(ms).slice(0, 5)));
    }
    svg.append(shape("text", { x: width, y: height - 4, "text-anchor": "end" }, this.end));
  }

  drawColumn(svg, x, wide, floor, lanes, most) {
    const total = lanes.reduce((a, b) => a + b, 0);
    const tall = Math.max(3, (Math.log2(1 + total) / most) * (floor - TOP - 4));
    let y = floor;
    for (let lane = lanes.length - 1; lane >= 0; lane -= 1) {
      if (!lanes[lane]) continue;
      // Even a single one of the worst gets a bar that can be seen: an unclean election may lose records.
      const part = Math.max(lane < SEVERE ? 9 : 1.5, (tall * lanes[lane]) / total);
      y -= part;
      svg.append(shape("rect", { class: LANE_NAMES[lane], x: x + 0.5, y: Math.max(TOP, y), width: Math.max(1.5, wide - 1), height: part, rx: 1 }));
    }
  }

  describe(columns) {
    const totals = LANE_NAMES.map((_, lane) => [...columns.values()].reduce((sum, lanes) => sum + lanes[lane], 0));
    const told = LANE_NAMES.map((name, lane) => totals[lane] ? plural(totals[lane], name === "other" ? "other change" : LANES[name]) : "").filter(Boolean);
    const nothing = this.isStandby ? "The engine that decides has the time line." : "Nothing changed in this time.";
    const unknown = this.oldSince ? ` What happened since ${this.oldSince} is not known.` : "";
    const where = this.canMove ? " Drag the handle, or use the arrow keys, to see the cluster as it was." : "";
    this.text.textContent = (told.length ? `${told.join(", ")} in this time.` : unknown ? "" : nothing) + unknown + where;
    this.at.setAttribute("aria-valuemin", String(Math.round(this.from)));
    this.at.setAttribute("aria-valuemax", String(Math.round(this.nowMs)));
    this.at.setAttribute("aria-valuenow", String(this.chosenMs ?? Math.round(this.nowMs)));
    this.at.setAttribute("aria-valuetext", this.chosenMs === null ? this.end : moment(this.chosenMs));
  }
}
