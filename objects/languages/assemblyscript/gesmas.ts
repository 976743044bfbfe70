// What a class of gesmas is written with in AssemblyScript.
//
// docs/abi.md is the page behind it: each function that talks to the host makes one host call of it.
// Invariants: arguments that are not those of the interface end the call as that, and a response that
// is not of its form ends it with a panic; a failed assertion and a `throw` reach the host as a panic
// with their message.
// Not here: the owners of permits, and checks of what a class sends, which the host makes.
// A global of a class may be computed as long as that takes no host call: `build` computes it.

import { Bytes, Reader, Writer } from "./bytes";

export { Bytes, Reader, Writer } from "./bytes";

// @ts-ignore: decorator
@external("gesmas1", "call")
declare function hostCall(op: u32, input: usize, inputLength: u32, out: usize, capacity: u32): u32;
// @ts-ignore: decorator
@external("gesmas1", "fetch")
declare function hostFetch(out: usize, length: u32): void;

const enum Op {
  Get = 1, Set, Remove, Scan, PushBack, PushFront, PopBack, PopFront, DequeGet, Length,
  MapInsert, MapGet, MapRemove,
  P = 20, V, Release, SetCount, Count, Waiters,
  Now = 30, Random, Session, Principal, Object, Token, Log,
  WatchSession = 40, After, CancelAlarm, Notify,
  Return = 50, Abort, Continue, Panic, ArgumentsMalformed,
}

/** Most responses are shorter and need no second call. */
const RESPONSE: u32 = 256;

function ask(op: Op, request: Writer): Reader {
  const input = request.written();
  const out = heap.alloc(RESPONSE);
  const length = hostCall(op, input.at, input.length, out, RESPONSE);
  // What a response leaves is given back, so that a method can make many calls.
  if (length <= RESPONSE) return new Reader(heap.realloc(out, length), length);
  const kept = heap.alloc(length);
  hostFetch(kept, length);
  return new Reader(kept, length);
}

/** Ends the call with a last host call, which undoes its segment unless it is a Continue. */
function endWith(op: Op, request: Writer): void {
  const input = request.written();
  hostCall(op, input.at, input.length, 0, 0);
  unreachable();
}

function endResponse(response: Reader): void {
  response.end();
  if (response.malformed != null) panic("the host's response does not decode");
}

// Calls that are answered nothing, a number, a flag, and bytes or none.

function tell(op: Op, request: Writer): void {
  endResponse(ask(op, request));
}

function number(op: Op, request: Writer): u64 {
  const response = ask(op, request);
  const number = response.u64();
  endResponse(response);
  return number;
}

function flag(op: Op, request: Writer): bool {
  const response = ask(op, request);
  const flag = response.bool();
  endResponse(response);
  return flag;
}

function optional(op: Op, request: Writer): Reader | null {
  const response = ask(op, request);
  return response.bool() ? response : null;
}

function named(name: Bytes): Writer {
  return new Writer().rest(name);
}

// ---- methods ----

/** The arguments of a method: take them, then say that they end. */
export function fetchArguments(length: u32): Reader {
  const at = heap.alloc(length);
  hostFetch(at, length);
  return new Reader(at, length);
}

/** The arguments have been taken: ends the call if they were not those of the interface. */
export function endArguments(taken: Reader): void {
  taken.end();
  const why = taken.malformed;
  if (why != null) endWith(Op.ArgumentsMalformed, named(Bytes.of(why)));
}

function returnKind(kind: u8, payload: Bytes): void {
  const request = new Writer().u8(kind).rest(payload).written();
  hostCall(Op.Return, request.at, request.length, 0, 0);
}

/** The last call of a method, which then returns: with a result. */
export function returnResult(result: Writer): void { returnKind(0, result.written()); }
/** With no result. */
export function returnUnit(): void { returnResult(new Writer()); }
/** With an error of its class. */
export function returnError(error: Writer): void { returnKind(1, error.written()); }
/** When a P was cancelled. */
export function returnCancelled(): void { returnKind(2, new Bytes(0, 0)); }

/** Ends the call with an error of its class, and undoes its segment. */
export function abortWith(error: Writer): void { endWith(Op.Abort, error); }

/** Starts over in another method with an empty journal: for loops that block again and again. */
export function continueWith(method: string, argumentsOf: Writer): void {
  endWith(Op.Continue, new Writer().text(method).rest(argumentsOf.written()));
}

/** Ends the call as one that failed, and undoes its segment. */
export function panic(message: string): void { endWith(Op.Panic, named(Bytes.of(message))); }

/** What the compiler calls where a program fails; asconfig.json names it. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  panic((message != null ? message : "it failed") + place(file, line));
}

function place(file: string | null, line: u32): string {
  return file != null ? ", " + file + ":" + line.toString() : "";
}

// ---- state ----

/** A field of the class that holds one value. */
export class Value {
  private name: Bytes;

  constructor(name: string) { this.name = Bytes.of(name); }

  /** The value, which the class takes apart, or null. */
  get(): Reader | null { return optional(Op.Get, named(this.name)); }
  set(value: Writer): void {
    tell(Op.Set, new Writer().bytes(this.name).rest(value.written()));
  }
  /** Removes it, and gives the one that was there. */
  remove(): Reader | null { return optional(Op.Remove, named(this.name)); }
}

/** Keys with values in the order of the keys. A set is a map with values of no bytes. */
export class Map {
  private name: Bytes;

  constructor(name: string) { this.name = Bytes.of(name); }

  /** Sets the value of a key, and gives the one that was there. */
  insert(key: Writer, value: Writer): Reader | null {
    const request = new Writer().bytes(this.name).bytes(key.written()).rest(value.written());
    return optional(Op.MapInsert, request);
  }
  get(key: Writer): Reader | null { return optional(Op.MapGet, this.at(key)); }
  /** Removes a key, and gives the value that was there. */
  remove(key: Writer): Reader | null { return optional(Op.MapRemove, this.at(key)); }
  length(): u64 { return number(Op.Length, named(this.name)); }

  /**
   * A page of entries from a key on, or from the end if it is null: take their `count(8)`, then the
   * `bytes` of each key and each value. A page may be short; only an empty one is the last.
   */
  scan(after: Bytes | null, reverse: bool, entries: u32): Reader {
    const request = new Writer().bytes(this.name).bool(after != null);
    if (after != null) request.bytes(after);
    return ask(Op.Scan, request.bool(reverse).u32(entries));
  }

  private at(key: Writer): Writer { return new Writer().bytes(this.name).rest(key.written()); }
}

/** A sequence with two ends. */
export class Deque {
  private name: Bytes;

  constructor(name: string) { this.name = Bytes.of(name); }

  pushBack(item: Writer): void { tell(Op.PushBack, this.with(item)); }
  pushFront(item: Writer): void { tell(Op.PushFront, this.with(item)); }
  /** The item, which the class takes apart, or null. */
  popBack(): Reader | null { return optional(Op.PopBack, named(this.name)); }
  popFront(): Reader | null { return optional(Op.PopFront, named(this.name)); }
  get(index: u64): Reader | null {
    return optional(Op.DequeGet, new Writer().u64(index).rest(this.name));
  }
  length(): u64 { return number(Op.Length, named(this.name)); }

  private with(item: Writer): Writer { return new Writer().bytes(this.name).rest(item.written()); }
}

// ---- semaphores ----

export const enum Wait { ForEver, NotAtAll, For, Until }
export const enum Owner { Nobody, Invocation, Session }
export const enum Status { Granted, Owned, WouldWait, TimeUp, Cancelled, SessionOver, NoSession }

/** What became of a P; the permit's number is for `release`. */
export class Permit {
  constructor(readonly status: Status, readonly number: u64) {}
}

/** A count of permits, and a queue of those who wait for one. */
export class Semaphore {
  private constructor(private name: Bytes) {}

  static field(name: string): Semaphore { return new Semaphore(Bytes.of(name)); }

  /** The semaphore of a key, of a field of semaphores named by keys. */
  static keyed(field: string, key: Writer): Semaphore {
    const name = new Writer().rest(Bytes.of(field)).u8(0).rest(key.written());
    return new Semaphore(name.written());
  }

  /** A P in full. Where `time` says nothing it is 0. */
  acquire(wait: Wait, time: u64, owner: Owner): Permit {
    const request = new Writer().u8(<u8>wait).u64(time).u8(<u8>owner).rest(this.name);
    const response = ask(Op.P, request);
    const status = response.u8();
    const permit = response.u64();
    endResponse(response);
    return new Permit(status, permit);
  }

  /** Blocks until there is a permit. False: the call was cancelled; it may clean up, and returns so. */
  p(): bool { return this.acquire(Wait.ForEver, 0, Owner.Nobody).status == Status.Granted; }
  /** Takes a permit if there is one and nobody waits for it. */
  tryP(): bool { return this.acquire(Wait.NotAtAll, 0, Owner.Nobody).status == Status.Granted; }
  /** Blocks for so many nanoseconds at most: granted, time up, or cancelled. */
  pFor(nanoseconds: u64): Status {
    const status = this.acquire(Wait.For, nanoseconds, Owner.Nobody).status;
    return status == Status.WouldWait ? Status.TimeUp : status;
  }
  /** Gives permits: the first waiters wake, and the rest is counted. */
  v(count: u64 = 1): void { tell(Op.V, new Writer().u64(count).rest(this.name)); }
  /** In `init` only. */
  setCount(count: u64): void { tell(Op.SetCount, new Writer().u64(count).rest(this.name)); }
  count(): u64 { return number(Op.Count, named(this.name)); }
  waiters(): u64 { return number(Op.Waiters, named(this.name)); }
}

/** Gives back a permit by its number; false when nobody owns it any more. */
export function release(permit: u64): bool { return flag(Op.Release, new Writer().u64(permit)); }

// ---- context ----

export function now(): u64 { return number(Op.Now, new Writer()); }
export function random(): u64 { return number(Op.Random, new Writer()); }
export function token(): u64 { return number(Op.Token, new Writer()); }
/** The caller's session, a `u64` to take, or null in a handler. */
export function session(): Reader | null { return optional(Op.Session, new Writer()); }
export function principal(): string { return ask(Op.Principal, new Writer()).rest().toString(); }
export function object(): string { return ask(Op.Object, new Writer()).rest().toString(); }
/** Level 1 is an error, 2 a warning, 3 information, 4 for debugging. */
export function log(level: u8, text: string): void {
  tell(Op.Log, new Writer().u8(level).rest(Bytes.of(text)));
}

/** Invokes a handler once when a session is over, and gives the alarm's number. */
export function watchSession(session: u64, handler: string, argumentsOf: Writer): u64 {
  return alarm(Op.WatchSession, session, handler, argumentsOf);
}
/** Invokes a handler once after so many nanoseconds, and gives the alarm's number. */
export function after(nanoseconds: u64, handler: string, argumentsOf: Writer): u64 {
  return alarm(Op.After, nanoseconds, handler, argumentsOf);
}
function alarm(op: Op, first: u64, handler: string, argumentsOf: Writer): u64 {
  return number(op, new Writer().u64(first).text(handler).rest(argumentsOf.written()));
}
export function cancelAlarm(alarm: u64): bool {
  return flag(Op.CancelAlarm, new Writer().u64(alarm));
}
/** Sends an event to a session; false when it is over. */
export function notify(session: u64, payload: Bytes): bool {
  return flag(Op.Notify, new Writer().u64(session).rest(payload));
}
