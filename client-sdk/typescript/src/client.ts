// Clients and sessions, as users see them.
//
//   client ─► session ─► calls on its behalf, locks, events
//      └────► calls on behalf of nobody
//
// Nothing decides here; that is done in `core.ts`, `call.ts` and `session.ts`.

import { call, timeoutOf, type CallOptions, type Called } from "./call.js";
import { Core, pathOf, split } from "./core.js";
import { Events } from "./events.js";
import type { Arguments } from "./interface.js";
import { SessionCore, type SessionState } from "./session.js";
import { Election, Lock, Membership, RwLock, Semaphore } from "./standard.js";
import { milliseconds, type Span } from "./values.js";

const LOADING = 120_000;
/** Even a client whose calls have no limit wants to know that a list cannot be had. */
const TIME_LONGEST = 12 * 3_600_000;

/** What calls can be made through: a client or a session. */
export class Caller {
  protected constructor(
    protected readonly core: Core,
    private readonly behalf: SessionCore | undefined,
    protected readonly defaults: CallOptions,
  ) {}

  /** Calls a method of an object: `call("Queue/jobs", "produce", { item: "resize cat.png" })`. The promise also
   * has `fate`: what became of the call, whatever became of its caller. */
  call<T = unknown>(target: string, method: string, given: Arguments = {}, options: CallOptions = {}): Called<T> {
    const all = { ...this.defaults, ...options };
    const { result, fate } = call(this.core, target, method, given, all, this.behalf);
    return Object.assign(result.then((value) => value as T), { fate }) as Called<T>;
  }

  /** How long what is no call may take. */
  protected time(): number {
    return Math.min(timeoutOf(this.defaults), TIME_LONGEST);
  }

  /** @internal */
  get place(): { core: Core; session: SessionCore | undefined } {
    return { core: this.core, session: this.behalf };
  }

  /** Creates an object with the arguments of its class's `init`; again changes nothing. */
  async create(target: string, given: Arguments = {}): Promise<void> {
    await this.core.create(target, given, this.time());
  }

  /** Removes an object, also one that is not there; its callers are told. */
  async remove(target: string): Promise<void> {
    await this.core.ask("DELETE", pathOf(target), this.time());
  }
}

/** How a session is opened. */
export interface SessionOptions {
  /** How long it lives without being heard of, "30s" if not said, five seconds at least. */
  timeout?: Span;
  /** How long the opening may take. */
  patience?: Span;
}

/** A client of the replicas at some addresses, any of which will do. */
export class Client extends Caller {
  constructor(endpoints: readonly string[], options: CallOptions = {}) {
    super(new Core(endpoints), undefined, options);
  }

  /** Ends all connections. Calls that are under way are withdrawn and end as `Closed`. Sessions are not
   * closed by it. */
  async close(): Promise<void> {
    await this.core.close();
  }

  /** Where the next request goes. */
  get endpoint(): string {
    return this.core.at().address;
  }

  /** Opens a session, which is kept alive until it is closed. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const patience = milliseconds(options.patience ?? "30s");
    return new Session(await SessionCore.open(this.core, options.timeout ?? "30s", patience), this.defaults);
  }

  /** Does something in a session, which is closed at the end. */
  async withSession<T>(work: (session: Session) => Promise<T>, options: SessionOptions = {}): Promise<T> {
    const session = await this.session(options);
    try {
      return await work(session);
    } finally {
      await session.close();
    }
  }

  /** Loads a class; it can be called when this returns. */
  async putClass(name: string, module: Uint8Array): Promise<void> {
    const path = `/v1/classes/${encodeURIComponent(name)}`;
    await this.core.ask("PUT", path, LOADING, module, { attempt: LOADING });
  }

  /** The calls that are blocked in an object. */
  async blocked(target: string): Promise<Record<string, unknown>[]> {
    const [className, name] = split(target).map(encodeURIComponent);
    const path = `/v1/invocations?class=${className}&object=${name}`;
    const answer = await this.core.ask("GET", path, this.time());
    return (JSON.parse(answer.body) as { invocations: Record<string, unknown>[] }).invocations;
  }

  /** Cancels a blocked call, as an operator. */
  async cancel(invocation: string): Promise<void> {
    await this.core.ask("DELETE", `/v1/invocations/${invocation}`, this.time());
  }
}

/** A lease on the service. Locks, permits and memberships belong to it, and are given back when it is over. */
export class Session extends Caller {
  /** @internal */
  constructor(
    private readonly own: SessionCore,
    defaults: CallOptions,
  ) {
    super(own.core, own, defaults);
  }

  /** Its number, as methods and operators see it. */
  get id(): string {
    return this.own.id;
  }

  /** Its timeout in milliseconds, as the cluster granted it. */
  get timeout(): number {
    return this.own.timeout;
  }

  get state(): SessionState {
    return this.own.state;
  }

  /** Whether it is, or may be, over. */
  get isLost(): boolean {
    return this.own.state !== "open";
  }

  /** Aborted when it is, or may be, over. */
  get lost(): AbortSignal {
    return this.own.lost;
  }

  /** Shows now that the client lives, and what it has of its events; a timer does so anyway. */
  async keepAlive(): Promise<void> {
    await this.own.keepAlive();
  }

  /** That event and all before were consumed and need not come again. */
  acknowledge(number: bigint): void {
    this.own.acknowledge(number);
  }

  /** A number that nobody else on this session was given, by which a `Lock` tells owners apart. */
  newOwner(): bigint {
    return this.own.newOwner();
  }

  /** Its events as they come, from the first that is not acknowledged. One at a time: a second stream takes
   * over from the first. */
  events(): Events {
    return new Events(this.own);
  }

  /** A handle to `Lock/name` with an owner of its own: handles exclude each other. */
  lock(name: string): Lock {
    return new Lock(this, name);
  }

  /** A handle to `RwLock/name`: many read or one writes. */
  rwLock(name: string): RwLock {
    return new RwLock(this, name);
  }

  /** A handle to `Semaphore/name`. */
  semaphore(name: string): Semaphore {
    return new Semaphore(this, name);
  }

  /** A handle to `Election/name`. */
  election(name: string): Election {
    return new Election(this, name);
  }

  /** A handle to `Membership/name`. */
  membership(name: string): Membership {
    return new Membership(this, name);
  }

  /** Ends it: what it owns is given back, its blocked calls are cancelled. */
  async close(): Promise<void> {
    await this.own.close();
  }

  /** The same, at the end of an `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
