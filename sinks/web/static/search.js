// The field that finds partitions and topics by their names.

import { make } from "./lists.js";
import { number } from "./words.js";

const WAIT_MS = 150;

export class Search {
  // `fetched` asks the engine, and `open` opens what was found.
  constructor(form, list, fetched, open) {
    Object.assign(this, { field: form.name_, list, fetched, open, due: null });
    this.field.addEventListener("input", () => this.typed());
    this.field.addEventListener("keydown", (event) => this.key(event));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    form.addEventListener("focusout", (event) => !form.contains(event.relatedTarget) && this.hide());
  }

  get text() { return this.field.value.trim(); }

  typed() {
    clearTimeout(this.due);
    if (this.text) this.due = setTimeout(() => this.look(), WAIT_MS);
    else this.hide();
  }

  async look() {
    const text = this.text;
    const answer = await this.fetched(`/page/topics?match=${encodeURIComponent(text)}`);
    // The answer may be late, and to another text.
    if (text !== this.text || document.activeElement !== this.field) return;
    const names = answer.topics ?? [];
    const left = (answer.count ?? 0) - names.length;
    this.list.replaceChildren(
      ...names.map((name) => make("li", {}, make("button", { type: "button", "data-topic": name }, name))),
      ...(left > 0 ? [make("li", { className: "hint" }, `and ${number(left)} more`)] : []),
      ...(names.length ? [] : [make("li", { className: "hint" }, answer.error ?? "no topic has this in its name")]),
    );
    this.list.hidden = false;
  }

  // A partition's name ends in its number; anything else is a topic's.
  submit() {
    const partition = /^(.+)-([0-9]+)$/.exec(this.text);
    const first = this.list.hidden ? null : this.list.querySelector("button");
    if (partition) this.open(partition[1], Number(partition[2]));
    else if (this.text) this.open(first?.dataset.topic ?? this.text);
    this.hide();
  }

  key(event) {
    if (event.key === "Escape") this.hide();
    if (event.key !== "ArrowDown" || this.list.hidden) return;
    event.preventDefault();
    this.list.querySelector("button")?.focus();
  }

  hide() {
    clearTimeout(this.due);
    this.list.hidden = true;
  }
}
