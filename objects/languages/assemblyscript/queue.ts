// A bounded queue in AssemblyScript: the same as the standard class Queue (objects/classes/queue),
// method by method.
//
// Invariant: outside of a segment, the permits of `filled` that are counted or on their way to a
// consumer are as many as the items, and those with the permits of `free` add up to the capacity.
// Not here: redelivery. An item is the reply to the consumer's call.

import {
  Bytes, Deque, Semaphore, Status, Writer, endArguments, fetchArguments, returnCancelled, returnError,
  returnResult, returnUnit,
} from "./gesmas";

const items = new Deque("items");
const free = Semaphore.field("free");
const filled = Semaphore.field("filled");

function append(item: Bytes): void {
  items.pushBack(new Writer().bytes(item));
  filled.v();
}

function take(): Bytes {
  const item = assert(items.popFront(), "a permit is an item").bytes();
  free.v();
  return item;
}

/** Returns an option of bytes: none, or the item that is taken now. */
function returnTaken(isThere: bool): void {
  const result = new Writer().bool(isThere);
  if (isThere) result.bytes(take());
  returnResult(result);
}

export function m_init(length: u32): void {
  const given = fetchArguments(length);
  const capacity = given.u32();
  endArguments(given);
  // The error ZeroCapacity of the class, its first and only one.
  if (capacity == 0) return returnError(new Writer().u8(0));
  free.setCount(capacity);
  returnUnit();
}

export function m_produce(length: u32): void {
  const given = fetchArguments(length);
  const item = given.bytes();
  endArguments(given);
  if (!free.p()) return returnCancelled();
  append(item);
  returnUnit();
}

export function m_try_produce(length: u32): void {
  const given = fetchArguments(length);
  const item = given.bytes();
  endArguments(given);
  const isFree = free.tryP();
  if (isFree) append(item);
  returnResult(new Writer().bool(isFree));
}

export function m_produce_for(length: u32): void {
  const given = fetchArguments(length);
  const item = given.bytes();
  const duration = given.u64();
  endArguments(given);
  const status = free.pFor(duration);
  if (status == Status.Cancelled) return returnCancelled();
  if (status == Status.Granted) append(item);
  returnResult(new Writer().bool(status == Status.Granted));
}

export function m_consume(length: u32): void {
  endArguments(fetchArguments(length));
  if (!filled.p()) return returnCancelled();
  returnResult(new Writer().bytes(take()));
}

export function m_try_consume(length: u32): void {
  endArguments(fetchArguments(length));
  returnTaken(filled.tryP());
}

export function m_consume_for(length: u32): void {
  const given = fetchArguments(length);
  const duration = given.u64();
  endArguments(given);
  const status = filled.pFor(duration);
  if (status == Status.Cancelled) return returnCancelled();
  returnTaken(status == Status.Granted);
}

export function m_length(length: u32): void {
  endArguments(fetchArguments(length));
  returnResult(new Writer().u64(items.length()));
}
