// Whether what the page shows is from now. The page measures it by itself, because an engine that hangs says nothing.

// How many beats in a row may be missing.
const BEATS_MISSED = 3;

export class Freshness {
  constructor() {
    this.beat = null;
  }

  take(beat) {
    this.beat = { ...beat, wallMs: Date.now(), steadyMs: performance.now() };
  }

  // How long ago the engine was heard. The steady clock stands still in a suspended machine, and the other one may be set.
  get silentMs() {
    return Math.max(Date.now() - this.beat.wallMs, performance.now() - this.beat.steadyMs);
  }

  // How old the state is; null if there is none.
  get ageMs() {
    return this.beat === null || this.beat.age_ms === null ? null : this.beat.age_ms + this.silentMs;
  }

  // Returns null while the state is from now, and otherwise since when it may have changed, by this machine's clock.
  get old() {
    if (this.beat === null) return null;
    if (this.silentMs > BEATS_MISSED * this.beat.every_ms) return { isSilent: true, sinceMs: Date.now() - this.silentMs };
    if (this.ageMs !== null && this.ageMs > this.beat.old_after_ms) return { isSilent: false, isUnheard: this.beat.is_unheard, sinceMs: Date.now() - this.ageMs };
    return null;
  }
}
