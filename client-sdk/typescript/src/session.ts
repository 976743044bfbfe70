// Sessions: kept alive from aside, through any endpoint.
//
// A keep-alive leaves every third of the timeout. The session is held for safe from the *first sending* of the
// last message that was answered, never from the answer, so that the client doubts before the cluster expires
// it. An opening is one message, however often it is sent: the cluster counts from the first that it got. Each
// keep-alive is a message of its own, and the cluster hears it anew.
// Invariants: `isLost` looks at the clock and not at what a timer has noted, so a program that stood still
// sees at once that it may have lost the session; a session that is over stays so.

import { now, safeUntil } from "./clock.js";
import { checked, type Core } from "./core.js";
import { Closed, GesmasError, SessionOver } from "./errors.js";
import { LOOK, pauseUntil, type Answer, type Request } from "./transport.js";
import { milliseconds, parseDuration, type Span } from "./values.js";

/** A replica confirms a keep-alive within five seconds or says that it cannot. */
const ATTEMPT_LONGEST = 6_000;
const CLOSING = 5_000;

/** Whether a session can be relied on. Doubtful: the cluster may not have heard of it for its timeout. */
export type SessionState = "open" | "doubtful" | "over";

/** See the head of the file. */
export class SessionCore {
  private safeUntil: number;
  private announced = 0n;
  private readonly ended = new AbortController();
  private doubted = new AbortController();
  private doubt: ReturnType<typeof setTimeout> | undefined;
  private owners = 0n;
  private readonly shares = new Map<string, number>();
  /** All events up to this one were consumed. */
  acknowledged = 0n;

  private constructor(
    readonly core: Core,
    readonly id: string,
    readonly timeout: number,
    openedAt: number,
  ) {
    this.safeUntil = safeUntil(openedAt, timeout);
    this.watch();
    core.closed.addEventListener("abort", () => this.end(), { signal: this.over });
    void this.keep();
  }

  static async open(core: Core, timeout: Span, patience: number): Promise<SessionCore> {
    const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
    const body = JSON.stringify({ timeout: `${Math.round(milliseconds(timeout))}ms` });
    const sentAt = now();
    const request: Request = { method: "POST", path: "/v1/sessions", headers, body };
    try {
      const { session, timeout: granted } = openedBy(await core.attempts(() => request, sentAt + patience));
      return new SessionCore(core, session, parseDuration(granted).milliseconds, sentAt);
    } catch (error) {
      if (error instanceof Closed) await core.attend(closeUnclaimed(core, request));
      throw error;
    }
  }

  get state(): SessionState {
    if (this.over.aborted) return "over";
    return now() < this.safeUntil ? "open" : "doubtful";
  }

  /** Aborted when it is over. */
  get over(): AbortSignal {
    return this.ended.signal;
  }

  /** Aborted when it is, or may be, over. One that was only doubtful gives a fresh signal afterwards. */
  get lost(): AbortSignal {
    this.weigh();
    return this.doubted.signal;
  }

  newOwner(): bigint {
    this.owners += 1n;
    return this.owners;
  }

  /** One guard more stands for something that the session has once, however often it asks. */
  share(what: string): void {
    this.shares.set(what, (this.shares.get(what) ?? 0) + 1);
  }

  /** One guard less; tells whether it was the last. */
  unshare(what: string): boolean {
    const left = (this.shares.get(what) ?? 1) - 1;
    if (left > 0) this.shares.set(what, left);
    else this.shares.delete(what);
    return left <= 0;
  }

  acknowledge(number: bigint): void {
    if (number > this.acknowledged) this.acknowledged = number;
  }

  async keepAlive(): Promise<void> {
    if (this.over.aborted) throw new SessionOver("session-unknown", `session ${this.id} is over`);
    let [sentAt, acknowledged] = [now(), this.acknowledged];
    const request = (start: number): Request => {
      [sentAt, acknowledged] = [start, this.acknowledged];
      const news = acknowledged > this.announced ? { events: String(acknowledged) } : {};
      const headers = { "content-type": "application/json" };
      return { method: "POST", path: `${this.path}/keep-alive`, headers, body: JSON.stringify(news) };
    };
    const attempt = Math.min(this.timeout / 3, ATTEMPT_LONGEST);
    const answer = await this.core.attempts(request, now() + this.timeout, { attempt, signal: this.over });
    try {
      checked(answer);
    } catch (error) {
      if (error instanceof SessionOver) this.end();
      throw error;
    }
    this.safeUntil = Math.max(this.safeUntil, safeUntil(sentAt, this.timeout));
    if (acknowledged > this.announced) this.announced = acknowledged;
    this.watch();
  }

  /** It is over. */
  end(): void {
    clearTimeout(this.doubt);
    this.ended.abort();
    this.doubted.abort();
  }

  /** Ends it in the cluster; without an answer it expires by itself. */
  async close(): Promise<void> {
    this.end();
    const closing = this.core.ask("DELETE", this.path, CLOSING, undefined, { attempt: CLOSING, despiteClosing: true });
    await this.core.attend(closing).catch((error: unknown) => {
      if (!(error instanceof GesmasError)) throw error;
    });
  }

  private get path(): string {
    return `/v1/sessions/${this.id}`;
  }

  private async keep(): Promise<void> {
    for (;;) {
      await pauseUntil(now() + this.timeout / 3, this.over);
      if (this.over.aborted) return;
      try {
        await this.keepAlive();
      } catch (error) {
        if (error instanceof SessionOver || error instanceof Closed) return;
        // Doubtful by now, and perhaps not over: the cluster counts no time in which it is down.
      }
    }
  }

  /** Tells whoever watches when the time is up. */
  private watch(): void {
    clearTimeout(this.doubt);
    if (this.over.aborted) return;
    if (this.doubted.signal.aborted) this.doubted = new AbortController();
    this.doubt = setTimeout(() => this.weigh(), Math.min(LOOK, Math.max(0, this.safeUntil - now())));
  }

  private weigh(): void {
    if (this.state !== "open") this.doubted.abort();
    else if (!this.doubted.signal.aborted) this.watch();
  }
}

interface Opened {
  session: string;
  timeout: string;
}

function openedBy(answer: Answer): Opened {
  return JSON.parse(checked(answer).body) as Opened;
}

/** Closes a session whose client was closed while it was opened: the same opening tells which it is. Without an
 * answer it expires. */
async function closeUnclaimed(core: Core, opening: Request): Promise<void> {
  const patience = { attempt: CLOSING, despiteClosing: true };
  try {
    const { session } = openedBy(await core.attempts(() => opening, now() + CLOSING, patience));
    await core.ask("DELETE", `/v1/sessions/${session}`, CLOSING, undefined, patience);
  } catch (error) {
    if (!(error instanceof GesmasError)) throw error;
  }
}
