// The stream of what the engine sends. It is opened again when it ends, and when nothing comes for too long.

// A browser gives up a stream that is refused, so the page opens another one after this time.
const AGAIN_MS = 5_000;
const NO_ANSWER = "The engine does not answer. The page tries again.";
// A connection may be lost without a sign: a firewall forgot it, or one machine lost its power. The page only receives,
// so it cannot learn that. It takes another connection when so many beats in a row are missing.
const BEATS_MISSED = 6;
// Until the first beat says how often they come.
const FIRST_EVERY_MS = 2_000;

export class Stream {
  // `takers` has a function for each kind of event. `linked` is told what is wrong with the connection.
  constructor(takers, freshness, linked) {
    Object.assign(this, { takers, freshness, linked, source: null, openedMs: 0 });
    this.open();
  }

  open() {
    this.source?.close();
    const source = new EventSource("/page/events");
    Object.assign(this, { source, openedMs: performance.now() });
    for (const [name, take] of this.takers) source.addEventListener(name, (event) => take(JSON.parse(event.data)));
    source.onopen = () => this.linked("");
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this.refused();
      else this.linked(NO_ANSWER);
    };
  }

  async refused() {
    setTimeout(() => this.open(), AGAIN_MS);
    this.linked("The engine serves too many pages at the moment. This one tries again.");
    const answer = await fetch("/page/icon.svg").catch(() => null);
    // The session has ended, so the page asks for the token after a reload.
    if (answer?.status === 401) location.reload();
    if (!answer) this.linked(NO_ANSWER);
  }

  // Opens another stream if this one has been silent for too long.
  look() {
    const { beat } = this.freshness;
    const heardMs = Math.min(beat ? this.freshness.silentMs : Infinity, performance.now() - this.openedMs);
    if (heardMs > BEATS_MISSED * (beat?.every_ms ?? FIRST_EVERY_MS)) this.open();
  }
}
