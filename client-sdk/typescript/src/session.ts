// Sessions: kept alive from aside, through any endpoint.
//
// A keep-alive leaves every third of the timeout. The session is held for safe from the *sending* of the
// last one that was answered, never from the answer, so that the client doubts before the cluster expires it.
// Invariants: `isLost` looks at the clock and not at what a timer has noted, so a program that stood still
// sees at once that it may have lost the session; a session that is over stays so.

import { checked, type Core } from "./core.js";
import { Closed, GesmasError, SessionOver } from "./errors.js";
import { now, pause, type Request } from "./transport.js";
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
  /** All events up to this one were consumed. */
  acknowledged = 0n;

  private constructor(
    readonly core: Core,
    readonly id: string,
    readonly timeout: number,
    openedAt: number,
  ) {
    this.safeUntil = openedAt + timeout;
    this.watch();
    core.closed.addEventListener("abort", () => this.end(), { signal: this.over });
    void this.keep();
  }

  static async open(core: Core, timeout: Span, patience: number): Promise<SessionCore> {
    const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
    const body = JSON.stringify({ timeout: `${Math.round(milliseconds(timeout))}ms` });
    let sentAt = now();
    const request = (start: number): Request => {
      sentAt = start;
      return { method: "POST", path: "/v1/sessions", headers, body };
    };
    const answer = checked(await core.attempts(request, now() + patience));
    const opened = JSON.parse(answer.body) as { session: string; timeout: string };
    return new SessionCore(core, opened.session, parseDuration(opened.timeout).milliseconds, sentAt);
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
    this.safeUntil = Math.max(this.safeUntil, sentAt + this.timeout);
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
    const closing = this.core.ask("DELETE", this.path, CLOSING, undefined, { attempt: CLOSING });
    await closing.catch((error: unknown) => {
      if (!(error instanceof GesmasError)) throw error;
    });
  }

  private get path(): string {
    return `/v1/sessions/${this.id}`;
  }

  private async keep(): Promise<void> {
    for (;;) {
      await pause(this.timeout / 3, this.over);
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
    this.doubt = setTimeout(() => this.weigh(), Math.max(0, this.safeUntil - now()));
  }

  private weigh(): void {
    if (this.state !== "open") this.doubted.abort();
    else if (!this.doubted.signal.aborted) this.watch();
  }
}
