// The clock by which deadlines and leases are judged.
//
// The rule, which the clients of all languages keep (docs/clients.md): it counts the time in which the
// machine sleeps, it never goes backward, and where it cannot know it takes more time to have passed, not less.
// The steady clock stands still while some machines sleep, and the wall clock, which anybody may set, tells of
// it: what the wall clock gains on the steady one counts as slept, what it loses counts as nothing.
// Invariant: no reading is smaller than one before it; at most `blind` milliseconds of sleep are not counted, which
// leases are shortened by, unless the wall clock is set back by as much while the machine sleeps.

/** What the wall clock gains is noise up to here: two clocks are not read at once, nor equally fine. */
const BLIND = 250;

/** See the head of the file. */
export class Clock {
  readonly blind = BLIND;
  private slept = 0;
  private lead: number;
  private last: number;

  constructor(
    private readonly steady: () => number,
    private readonly wall: () => number,
  ) {
    this.last = steady();
    this.lead = wall() - this.last;
  }

  /** Milliseconds since some moment. */
  now(): number {
    const steady = this.steady();
    const lead = this.wall() - steady;
    if (lead > this.lead + this.blind) {
      this.slept += lead - this.lead;
      this.lead = lead;
    } else {
      // From the lowest on: a step back must not hide the sleep that comes after it.
      this.lead = Math.min(this.lead, lead);
    }
    this.last = Math.max(this.last, steady + this.slept);
    return this.last;
  }
}

let clock = new Clock(
  () => performance.now(),
  () => Date.now(),
);

/** Has another clock used, for tests. */
export function use(other: Clock): void {
  clock = other;
}

/** Milliseconds since some moment, by the clock of the program. */
export function now(): number {
  return clock.now();
}

/** Until when something can be relied on that lasts for `timeout` from when the cluster heard of it, in a message
 * that was sent first at `sentAt`. */
export function safeUntil(sentAt: number, timeout: number): number {
  return sentAt + timeout - clock.blind;
}
