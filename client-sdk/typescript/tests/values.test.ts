// Values as JSON and back, without a server: what the cases cannot reach, since the server writes only one
// form of what it reads in many.

import assert from "node:assert/strict";
import test from "node:test";
import { Parser } from "gesmas/internal/events.js";
import { decode, encode, parseType } from "gesmas/internal/types.js";
import { Duration, Some, Time, parseDuration, parseTime } from "gesmas/internal/values.js";

const NAMED = { Metres: { record: [{ name: "0", type: "option<u64>" }] } };

test("types are read as interfaces write them", () => {
  const type = parseType("map<(u8, bool), list<bytes<16>>>", {});
  assert.equal(type.parts[0]?.parts[1]?.word, "bool");
  assert.equal(type.parts[1]?.parts[0]?.word, "bytes");
  for (const text of ["list<u8", "u8 u8", "(u8"]) assert.throws(() => parseType(text, {}), /type/);
});

test("an option of what may be null is written apart", () => {
  for (const text of ["option<option<u8>>", "option<unit>", "option<Metres>"]) {
    const type = parseType(text, NAMED);
    assert.deepEqual(encode(type, new Some(null)), { some: null });
    assert.deepEqual(decode(type, { some: null }), new Some(null));
    assert.equal(encode(type, null), null);
  }
});

test("bytes of every length survive base64", () => {
  const type = parseType("bytes", {});
  for (const length of [0, 1, 2, 3, 8191, 8192, 8193, 100_000]) {
    const bytes = Uint8Array.from({ length }, (_, index) => index % 251);
    assert.deepEqual(decode(type, encode(type, bytes)), bytes);
  }
});

test("spans and points are exact", () => {
  assert.equal(parseDuration("1h30m").nanoseconds, 5_400_000_000_000n);
  assert.equal(parseDuration("1.5s").nanoseconds, 1_500_000_000n);
  assert.equal(parseDuration("0s").nanoseconds, 0n);
  for (const text of ["", "30", "1 fortnight", "s"]) assert.throws(() => parseDuration(text), /no duration/);
  for (const nanoseconds of [0n, 1n, 999_999_999n, (1n << 64n) - 1n]) {
    assert.deepEqual(parseTime(new Time(nanoseconds).toString()), new Time(nanoseconds));
    assert.deepEqual(parseDuration(new Duration(nanoseconds).toString()), new Duration(nanoseconds));
  }
});

test("server-sent events are whole whatever the pieces they come in", () => {
  const stream = new TextEncoder().encode(": sign of life\n\nid: 1\r\nevent: event\ndata: {\"ö\": 1}\n\nid: 2\nevent: over\n\n");
  for (let size = 1; size <= stream.length; size += 1) {
    const parser = new Parser();
    const found = [];
    for (let start = 0; start < stream.length; start += size) found.push(...parser.feed(stream.slice(start, start + size)));
    assert.deepEqual(found.map((fields) => fields.get("id")), ["1", "2"]);
    assert.equal(found[0]?.get("data"), '{"ö": 1}');
  }
});
