// Client of gesmas, a replicated coordination server that its users program.

export type { CallOptions, Called, Fate } from "./call.js";
export { Caller, Client, Session, type SessionOptions } from "./client.js";
export * from "./errors.js";
export { Events, type SessionEvent } from "./events.js";
export type { Arguments } from "./interface.js";
export type { SessionState } from "./session.js";
export { Guard, Held, Leased } from "./guards.js";
export {
  Barrier,
  Counter,
  Election,
  Lease,
  Lock,
  Membership,
  Queue,
  RwLock,
  Semaphore,
  type Holder,
  type Limited,
  type Unlimited,
  type Waiting,
} from "./standard.js";
export { Duration, Some, Time, Variant, type Span } from "./values.js";
