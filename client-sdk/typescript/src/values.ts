// Values of classes that JavaScript has no type of its own for.
//
// Time and spans of time count nanoseconds in the cluster, in 64 bits; `Time` and `Duration` are exact.
// Invariant: all of them are immutable.

/** A span of time. */
export class Duration {
  constructor(readonly nanoseconds: bigint) {
    Object.freeze(this);
  }

  static ofMilliseconds(milliseconds: number): Duration {
    return new Duration(BigInt(Math.round(milliseconds * 1e6)));
  }

  get milliseconds(): number {
    return Number(this.nanoseconds) / 1e6;
  }

  toString(): string {
    return `${this.nanoseconds}ns`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** A point of time: nanoseconds since the epoch of Unix. */
export class Time {
  constructor(readonly nanoseconds: bigint) {
    Object.freeze(this);
  }

  static of(date: Date): Time {
    return new Time(BigInt(date.getTime()) * 1_000_000n);
  }

  toDate(): Date {
    return new Date(Number(this.nanoseconds / 1_000_000n));
  }

  toString(): string {
    const seconds = this.nanoseconds / 1_000_000_000n;
    const fraction = String(this.nanoseconds % 1_000_000_000n).padStart(9, "0");
    return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** A variant of a choice that says something besides its name. One that does not is a string. */
export class Variant {
  constructor(
    readonly name: string,
    readonly fields: unknown,
  ) {
    Object.freeze(this);
  }
}

/** A value that is there, where the value itself may be null. */
export class Some {
  constructor(readonly value: unknown) {
    Object.freeze(this);
  }
}

/** A span of time as callers write it: milliseconds, a text such as "30s", or a `Duration`. */
export type Span = number | string | Duration;

const NANOSECONDS: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  "µs": 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
  w: 604_800_000_000_000n,
};

/** The span that a text such as "1h30m" says. */
export function parseDuration(text: string): Duration {
  let total = 0n;
  let rest = text.trim();
  while (rest !== "" || total === 0n) {
    const part = /^(\d+)(?:\.(\d+))?\s*([a-zµ]+)\s*/.exec(rest);
    const unit = part?.[3] === undefined ? undefined : NANOSECONDS[part[3]];
    if (part === null || unit === undefined) throw new RangeError(`${JSON.stringify(text)} is no duration`);
    const fraction = part[2] ?? "";
    total += BigInt(part[1] ?? "0") * unit + (BigInt(fraction || "0") * unit) / 10n ** BigInt(fraction.length);
    rest = rest.slice(part[0].length);
    if (rest === "") break;
  }
  return new Duration(total);
}

/** The point of time that a text such as "2026-11-27T10:00:00.5Z" says. */
export function parseTime(text: string): Time {
  const part = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text);
  if (part === null) throw new RangeError(`${JSON.stringify(text)} is no time`);
  const seconds = BigInt(Date.parse(`${part[1]}Z`) / 1000);
  return new Time(seconds * 1_000_000_000n + BigInt((part[2] ?? "").padEnd(9, "0")));
}

/** Milliseconds of a span. */
export function milliseconds(span: Span): number {
  if (typeof span === "number") return span;
  return (typeof span === "string" ? parseDuration(span) : span).milliseconds;
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  // Not all at once: the arguments of a call are bounded.
  for (let start = 0; start < bytes.length; start += 8192) {
    text += String.fromCharCode(...bytes.subarray(start, start + 8192));
  }
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}
