// Events of a session, as server-sent events through any endpoint.
//
// An event is acknowledged when the next one is asked for, or by `Session.acknowledge`; the next keep-alive
// says so to the cluster, and so does a reconnection. What is not acknowledged comes again after a
// reconnection, and is not given to the caller twice.
// Invariant: numbers rise; what is missing between them was announced as a gap.

import { problemOf } from "./core.js";
import { SessionOver } from "./errors.js";
import type { SessionCore } from "./session.js";
import { Disconnected, pause, type Endpoint } from "./transport.js";
import { decodeBytes, type Json } from "./types.js";

/** The server shows every ten seconds that a stream lives. */
const SILENCE = 25_000;
const PAUSE_FIRST = 20;
const PAUSE_LONGEST = 1_000;

/** What a method sent to the session, or word of events that made way for newer ones. */
export type SessionEvent =
  | { readonly kind: "event"; readonly number: bigint; readonly payload: Uint8Array }
  | { readonly kind: "gap"; readonly first: bigint; readonly last: bigint };

/** Takes server-sent events apart. */
export class Parser {
  private rest = "";
  private fields = new Map<string, string>();
  private readonly decoder = new TextDecoder();

  /** The events that are whole now. */
  feed(data: Uint8Array): Map<string, string>[] {
    const lines = (this.rest + this.decoder.decode(data, { stream: true })).split("\n");
    this.rest = lines.pop() ?? "";
    const events: Map<string, string>[] = [];
    for (const line of lines.map((line) => line.replace(/\r$/, ""))) {
      const colon = line.indexOf(":");
      if (colon > 0) {
        this.fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ""));
      } else if (line === "" && this.fields.size > 0) {
        events.push(this.fields);
        this.fields = new Map();
      }
    }
    return events;
  }
}

function end(event: SessionEvent): bigint {
  return event.kind === "gap" ? event.last : event.number;
}

/** The events of a session. An event counts as consumed when the next one is asked for. */
export class Events implements AsyncIterableIterator<SessionEvent> {
  private given: bigint;
  private handedOut = 0n;
  private ready: SessionEvent[] = [];
  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  private connection = new AbortController();
  private endpoint: Endpoint | undefined;
  private parser = new Parser();
  private wait = PAUSE_FIRST;
  private readonly closing = new AbortController();

  /** @internal */
  constructor(private readonly session: SessionCore) {
    this.given = session.acknowledged;
    session.over.addEventListener("abort", () => this.close(), { signal: this.closing.signal });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<SessionEvent>> {
    if (this.handedOut > 0n) this.session.acknowledge(this.handedOut);
    for (;;) {
      const found = this.ready.shift();
      if (found !== undefined) {
        this.given = this.handedOut = end(found);
        return { done: false, value: found };
      }
      if (this.closing.signal.aborted) return { done: true, value: undefined };
      await this.hear();
    }
  }

  async return(): Promise<IteratorResult<SessionEvent>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** Breaks the connection and makes another, as when a network fails. */
  reconnect(): void {
    this.connection.abort();
  }

  /** Ends the stream; whoever waits for an event gets none. */
  close(): void {
    this.closing.abort();
    this.connection.abort();
  }

  private async hear(): Promise<void> {
    if (this.reader === undefined && !(await this.connect())) return;
    const silence = setTimeout(() => this.connection.abort(), SILENCE);
    let chunk: ReadableStreamReadResult<Uint8Array> | undefined;
    let failed = false;
    try {
      chunk = await this.reader?.read();
    } catch {
      failed = true;
    } finally {
      clearTimeout(silence);
    }
    if (chunk?.value === undefined) {
      this.reader = undefined;
      this.connection.abort();
      await this.turn(failed);
      return;
    }
    this.wait = PAUSE_FIRST;
    for (const fields of this.parser.feed(chunk.value)) this.take(fields);
  }

  private take(fields: Map<string, string>): void {
    const newest = this.ready.at(-1);
    const last = newest === undefined ? this.given : end(newest);
    const kind = fields.get("event");
    if (kind === "over") return this.session.end();
    const id = BigInt(fields.get("id") ?? "0");
    if (id <= last) return;
    const data = JSON.parse(fields.get("data") ?? "{}") as { payload: Json; from: string; to: string };
    if (kind === "event") {
      this.ready.push({ kind: "event", number: id, payload: decodeBytes(data.payload) });
    } else if (kind === "gap") {
      const first = BigInt(data.from) > last ? BigInt(data.from) : last + 1n;
      this.ready.push({ kind: "gap", first, last: BigInt(data.to) });
    }
  }

  private async connect(): Promise<boolean> {
    const { core, id, acknowledged } = this.session;
    this.endpoint = core.at();
    this.connection = new AbortController();
    if (this.closing.signal.aborted) return false;
    const headers = { accept: "text/event-stream", "last-event-id": String(acknowledged) };
    const request = { method: "GET", path: `/v1/sessions/${id}/events`, headers };
    const silence = setTimeout(() => this.connection.abort(), SILENCE);
    try {
      const response = await this.endpoint.follow(request, this.connection.signal);
      if (response.status === 200 && response.body !== null) {
        this.reader = response.body.getReader();
        this.parser = new Parser();
        return true;
      }
      const answer = { status: response.status, headers: response.headers, body: await response.text() };
      if (problemOf(answer) instanceof SessionOver) this.session.end();
      else await this.turn(false);
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
      await this.turn(true);
    } finally {
      clearTimeout(silence);
    }
    return false;
  }

  private async turn(failed: boolean): Promise<void> {
    if (this.closing.signal.aborted) return;
    if (failed && this.endpoint !== undefined) this.session.core.turnFrom(this.endpoint);
    await pause(this.wait, this.closing.signal);
    this.wait = Math.min(2 * this.wait, PAUSE_LONGEST);
  }
}
