// Client of gesmas, a replicated coordination server that its users program.

export type { CallOptions } from "./call.js";
export { Caller, Client, Session, type SessionOptions } from "./client.js";
export * from "./errors.js";
export { Events, type SessionEvent } from "./events.js";
export type { Arguments } from "./interface.js";
export type { SessionState } from "./session.js";
export { Barrier, Counter, Election, Held, Lock, Queue, Semaphore, type Holder, type Waiting } from "./standard.js";
export { Duration, Some, Time, Variant, type Span } from "./values.js";
