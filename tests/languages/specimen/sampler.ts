// The class `Sampler` of tests/languages/src/sampler.rs in AssemblyScript, method by method.
//
// Not here: what its methods are for. They are for using all of the library.

import {
  Deque, Map, Owner, Reader, Semaphore, Status, Value, Wait, Writer, abortWith, after,
  cancelAlarm, continueWith, endArguments, fetchArguments, log, notify, now, object, principal, random,
  release, returnCancelled, returnError, returnResult, returnUnit, session, token, watchSession,
} from "./gesmas";

const number = new Value("number");
const shelf = new Map("shelf");
const depths = new Map("depths");
const line = new Deque("line");
const slot = Semaphore.field("slot");
const rung = new Deque("rung");

function doorOf(door: u32): Semaphore {
  return Semaphore.keyed("doors", new Writer().keyU32(door));
}

/** The value as a number, 0 if there is none. */
function current(): u64 {
  const value = number.get();
  return value ? value.u64() : 0;
}

function putNumber(out: Writer, value: Reader | null): Writer {
  out.bool(value != null);
  return value ? out.u64(value.u64()) : out;
}

function putBytes(out: Writer, value: Reader | null): Writer {
  out.bool(value != null);
  return value ? out.bytes(value.bytes()) : out;
}

function asked(value: u64): Writer {
  return new Writer().u8(0).u64(value);
}

export function m_init(length: u32): void {
  endArguments(fetchArguments(length));
  slot.setCount(2);
  returnUnit();
}

export function m_write(length: u32): void {
  const given = fetchArguments(length);
  const value = given.u64();
  endArguments(given);
  const former = number.get();
  number.set(new Writer().u64(value));
  returnResult(putNumber(new Writer(), former));
}

export function m_forget(length: u32): void {
  endArguments(fetchArguments(length));
  returnResult(putNumber(new Writer(), number.remove()));
}

export function m_shelve(length: u32): void {
  const given = fetchArguments(length);
  const name = given.text();
  const item = given.bytes();
  endArguments(given);
  const former = shelf.insert(new Writer().keyText(name), new Writer().bytes(item));
  returnResult(putBytes(new Writer(), former));
}

export function m_unshelve(length: u32): void {
  const given = fetchArguments(length);
  const name = given.text();
  endArguments(given);
  returnResult(putBytes(new Writer(), shelf.remove(new Writer().keyText(name))));
}

export function m_browse(length: u32): void {
  const given = fetchArguments(length);
  const name = given.text();
  endArguments(given);
  const key = new Writer().keyText(name);
  const result = putBytes(new Writer(), shelf.get(key));
  const page = shelf.scan(key.written(), false, 100);
  const count = page.count(8);
  result.u32(count);
  for (let index: u32 = 0; index < count; index++) {
    result.text(Reader.of(page.bytes()).keyText()).rest(page.bytes());
  }
  returnResult(result.u64(shelf.length()));
}

export function m_mark(length: u32): void {
  const given = fetchArguments(length);
  const depth = <i64>given.u64();
  const mark = given.u16();
  endArguments(given);
  depths.insert(new Writer().keyI64(depth), new Writer().u16(mark));
  const page = depths.scan(null, true, 100);
  const count = page.count(8);
  const result = new Writer().u32(count);
  for (let index: u32 = 0; index < count; index++) {
    const key = Reader.of(page.bytes());
    result.u64(<u64>key.keyI64()).rest(page.bytes());
  }
  returnResult(result);
}

export function m_join(length: u32): void {
  const given = fetchArguments(length);
  const value = new Writer().u64(given.u64());
  const front = given.bool();
  endArguments(given);
  if (front) line.pushFront(value);
  else line.pushBack(value);
  returnResult(new Writer().u64(line.length()));
}

export function m_part(length: u32): void {
  const given = fetchArguments(length);
  const place = given.u64();
  const front = given.bool();
  endArguments(given);
  const result = putNumber(new Writer(), line.get(place));
  returnResult(putNumber(result, front ? line.popFront() : line.popBack()));
}

export function m_facts(length: u32): void {
  endArguments(fetchArguments(length));
  const result = new Writer().u64(random()).u64(token());
  log(3, "the facts are asked for");
  putNumber(result, session());
  returnResult(result.text(principal()).text(object()).u64(now()));
}

export function m_pass(length: u32): void {
  const given = fetchArguments(length);
  const door = given.u32();
  endArguments(given);
  const before = current();
  if (!doorOf(door).p()) return returnCancelled();
  returnResult(new Writer().u64(before ^ current()));
}

export function m_hurry(length: u32): void {
  const given = fetchArguments(length);
  const door = doorOf(given.u32());
  const duration = given.u64();
  endArguments(given);
  const status = door.pFor(duration);
  if (status == Status.Cancelled) return returnCancelled();
  returnResult(new Writer().bool(status == Status.Granted).bool(door.tryP()));
}

export function m_open(length: u32): void {
  const given = fetchArguments(length);
  const door = given.u32();
  const count = given.u64();
  endArguments(given);
  doorOf(door).v(count);
  returnUnit();
}

export function m_own(length: u32): void {
  const given = fetchArguments(length);
  const door = given.u32();
  endArguments(given);
  const permit = slot.acquire(Wait.ForEver, 0, Owner.Invocation);
  if (permit.status != Status.Owned) return returnCancelled();
  if (!doorOf(door).p()) return returnCancelled();
  returnResult(new Writer().bool(release(permit.number)).bool(release(permit.number)));
}

export function m_keep(length: u32): void {
  const given = fetchArguments(length);
  const duration = given.u64();
  endArguments(given);
  const permit = slot.acquire(Wait.For, duration, Owner.Session);
  if (permit.status == Status.Cancelled) return returnError(new Writer().u8(1));
  if (permit.status > Status.Cancelled) return returnError(new Writer().u8(2));
  const owned = permit.status == Status.Owned;
  const result = new Writer().bool(owned);
  returnResult(owned ? result.u64(permit.number) : result);
}

export function m_give(length: u32): void {
  const given = fetchArguments(length);
  const permit = given.u64();
  endArguments(given);
  returnResult(new Writer().bool(release(permit)));
}

export function m_census(length: u32): void {
  const given = fetchArguments(length);
  const door = doorOf(given.u32());
  endArguments(given);
  returnResult(new Writer().u64(slot.count()).u64(door.count()).u64(door.waiters()));
}

export function m_later(length: u32): void {
  const given = fetchArguments(length);
  const duration = given.u64();
  const value = given.u64();
  endArguments(given);
  returnResult(new Writer().u64(after(duration, "ring", new Writer().u64(value))));
}

export function m_mourn(length: u32): void {
  const given = fetchArguments(length);
  const watched = given.u64();
  endArguments(given);
  returnResult(new Writer().u64(watchSession(watched, "ring", new Writer().u64(watched))));
}

export function m_unset(length: u32): void {
  const given = fetchArguments(length);
  const alarm = given.u64();
  endArguments(given);
  returnResult(new Writer().bool(cancelAlarm(alarm)));
}

export function m_tell(length: u32): void {
  const given = fetchArguments(length);
  const to = given.u64();
  const payload = given.bytes();
  endArguments(given);
  returnResult(new Writer().bool(notify(to, payload)));
}

export function m_fail(length: u32): void {
  const given = fetchArguments(length);
  const value = given.u64();
  endArguments(given);
  number.set(new Writer().u64(value));
  returnError(asked(value));
}

export function m_abort(length: u32): void {
  const given = fetchArguments(length);
  const door = given.u32();
  const value = given.u64();
  endArguments(given);
  if (!doorOf(door).p()) return returnError(new Writer().u8(1));
  number.set(new Writer().u64(value));
  abortWith(asked(value));
}

export function m_fall(length: u32): void {
  endArguments(fetchArguments(length));
  number.set(new Writer().u64(0));
  throw new Error("it falls");
}

export function m_rounds(length: u32): void {
  const given = fetchArguments(length);
  const door = given.u32();
  const left = given.u64();
  endArguments(given);
  if (!doorOf(door).p()) return returnCancelled();
  if (left > 0) continueWith("rounds", new Writer().u32(door).u64(left - 1));
  returnResult(new Writer().u64(current()));
}

export function m_look(length: u32): void {
  endArguments(fetchArguments(length));
  returnResult(putNumber(new Writer(), number.get()).u64(rung.length()));
}

export function m_ring(length: u32): void {
  const given = fetchArguments(length);
  const value = given.u64();
  endArguments(given);
  const permit = slot.acquire(Wait.For, 1_000_000_000, Owner.Session);
  const noSession = session() == null && permit.status == Status.NoSession;
  const noted = new Writer().u64(value).bool(noSession);
  rung.pushBack(new Writer().bytes(noted.written()));
  returnUnit();
}
