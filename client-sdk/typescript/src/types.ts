// Types of parameters and results, as interfaces write them, and values as JSON.
//
// Invariants: what is decoded is encoded to the same JSON value, whatever the type; what does not fit a
// type is sent as it is if JSON can say it, since the server's complaint names the place better than this
// could.
// Not here: which types a method has (`interface.ts`).

import { Duration, Some, Time, Variant, fromBase64, parseDuration, parseTime, toBase64 } from "./values.js";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Field {
  readonly name: string;
  readonly type: Type;
}

/** A type: its word, and the types within. Records and choices have fields and variants instead. */
export interface Type {
  readonly word: string;
  readonly parts: readonly Type[];
  readonly fields: readonly Field[];
  readonly variants: ReadonlyMap<string, readonly Field[]>;
}

interface FieldText {
  name: string;
  type: string;
}

/** Types with names, as interfaces describe them. */
export type Named = Record<string, { record?: FieldText[]; choice?: { name: string; fields?: FieldText[] }[] }>;

function type(word: string, more: Partial<Type> = {}): Type {
  return { word, parts: [], fields: [], variants: new Map(), ...more };
}

/** The type that a text such as `map<text, list<u32>>` says. */
export function parseType(text: string, named: Named): Type {
  const tokens = text.match(/[A-Za-z0-9_]+|[<>(),]/g) ?? [];
  const parsed = parse(tokens, named);
  if (tokens.length > 0) throw new RangeError(`${text} is no type`);
  return parsed;
}

export function parseFields(fields: FieldText[] | undefined, named: Named): Field[] {
  return (fields ?? []).map((field) => ({ name: field.name, type: parseType(field.type, named) }));
}

/** Takes a type off the tokens. */
function parse(tokens: string[], named: Named): Type {
  const word = tokens.shift() ?? "";
  if (word === "(") return type("tuple", { parts: parseParts(tokens, ")", named) });
  if (tokens[0] === "<") {
    tokens.shift();
    const parts = parseParts(tokens, ">", named);
    return word === "bytes" ? type("bytes") : type(word, { parts });
  }
  const definition = Object.hasOwn(named, word) ? named[word] : undefined;
  if (definition?.record !== undefined) return type("record", { fields: parseFields(definition.record, named) });
  if (definition?.choice === undefined) return type(word);
  const variants = definition.choice.map(
    (variant) => [variant.name, parseFields(variant.fields, named)] as const,
  );
  return type("choice", { variants: new Map(variants) });
}

function parseParts(tokens: string[], end: string, named: Named): Type[] {
  const parts: Type[] = [];
  while (tokens[0] !== end) {
    if (tokens[0] === ",") tokens.shift();
    if (tokens.length === 0) throw new RangeError(`a type has no ${end}`);
    parts.push(parse(tokens, named));
  }
  tokens.shift();
  return parts;
}

function mayBeNull(ty: Type): boolean {
  const [only, more] = ty.fields;
  if (ty.word === "record" && only?.name === "0" && more === undefined) return mayBeNull(only.type);
  return ty.word === "unit" || ty.word === "option";
}

const INTEGER = /^[ui](8|16|32|64|128)$/;
const WIDE = /^[ui](64|128)$/;

// -- to JSON --------------------------------------------------------------------------------------

/** The JSON of a value. */
export function encode(ty: Type, value: unknown): Json {
  switch (ty.word) {
    case "bytes":
      return encodeBytes(value);
    case "duration":
      return typeof value === "number" ? Duration.ofMilliseconds(value).toString() : plain(value);
    case "time":
      return value instanceof Date ? Time.of(value).toString() : plain(value);
    case "option":
      return encodeOption(part(ty, 0), value);
    case "list":
    case "set":
      return isItems(value) ? Array.from(value, (item) => encode(part(ty, 0), item)) : plain(value);
    case "tuple":
      return encodeTuple(ty.parts, value);
    case "map":
      return encodeMap(part(ty, 0), part(ty, 1), value);
    case "record":
      return encodeFields(ty.fields, value);
    case "choice":
      return encodeChoice(ty, value);
    default:
      if (WIDE.test(ty.word) && Number.isSafeInteger(value)) return String(value);
      return plain(value);
  }
}

function part(ty: Type, index: number): Type {
  return ty.parts[index] ?? type("unit");
}

function isItems(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value && !(value instanceof Map);
}

/** What JSON can say of a value without knowing its type. */
export function plain(value: unknown): Json {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return encodeBytes(value);
  if (value === undefined || typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(`${String(value)} is no value`);
  }
  return JSON.parse(JSON.stringify(value)) as Json;
}

function encodeBytes(value: unknown): Json {
  if (value instanceof Uint8Array) return { base64: toBase64(value) };
  return typeof value === "string" ? { text: value } : plain(value);
}

function encodeOption(inner: Type, value: unknown): Json {
  if (value === null || value === undefined) return null;
  const some = encode(inner, value instanceof Some ? value.value : value);
  return mayBeNull(inner) ? { some } : some;
}

function encodeTuple(parts: readonly Type[], value: unknown): Json {
  if (!Array.isArray(value) || value.length !== parts.length) return plain(value);
  return parts.map((ty, index) => encode(ty, value[index]));
}

function encodeMap(key: Type, inner: Type, value: unknown): Json {
  if (typeof value !== "object" || value === null) return plain(value);
  const entries = value instanceof Map ? [...value] : Array.isArray(value) ? value : Object.entries(value);
  // As pairs: they can be written whatever the type of the keys.
  return entries.map(([name, item]) => [encode(key, name), encode(inner, item)]);
}

function encodeFields(fields: readonly Field[], value: unknown): Json {
  const [first, second] = fields;
  if (first?.name === "0") {
    if (second === undefined) return encode(first.type, value);
    return encodeTuple(fields.map((field) => field.type), value);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return plain(value);
  const types = new Map(fields.map((field) => [field.name, field.type]));
  const encoded = Object.entries(value).map(([name, item]) => {
    const ty = types.get(name);
    return [name, ty === undefined ? plain(item) : encode(ty, item)] as const;
  });
  return Object.fromEntries(encoded);
}

function encodeChoice(ty: Type, value: unknown): Json {
  if (typeof value !== "object" || value === null) return plain(value);
  const [entry, more] = value instanceof Variant ? [[value.name, value.fields] as const] : Object.entries(value);
  if (entry === undefined || more !== undefined) return plain(value);
  return { [entry[0]]: encodeFields(ty.variants.get(entry[0]) ?? [], entry[1]) };
}

// -- from JSON ------------------------------------------------------------------------------------

/** The value of a JSON that the server wrote. */
export function decode(ty: Type, value: Json): unknown {
  switch (ty.word) {
    case "bytes":
      return decodeBytes(value);
    case "duration":
      return parseDuration(String(value));
    case "time":
      return parseTime(String(value));
    case "option":
      if (value === null) return null;
      if (mayBeNull(part(ty, 0))) return new Some(decode(part(ty, 0), (value as { some: Json }).some));
      return decode(part(ty, 0), value);
    case "list":
      return (value as Json[]).map((item) => decode(part(ty, 0), item));
    case "set":
      return new Set((value as Json[]).map((item) => decode(part(ty, 0), item)));
    case "tuple":
      return ty.parts.map((inner, index) => decode(inner, (value as Json[])[index] ?? null));
    case "map": {
      const pairs = Array.isArray(value) ? (value as [Json, Json][]) : Object.entries(value as object);
      return new Map(pairs.map(([name, item]) => [decode(part(ty, 0), name), decode(part(ty, 1), item)]));
    }
    case "record":
      return decodeFields(ty.fields, value);
    case "choice":
      return decodeChoice(ty, value);
    default:
      if (WIDE.test(ty.word)) return BigInt(value as string);
      return INTEGER.test(ty.word) ? Number(value) : value;
  }
}

/** Bytes from `{"text": …}` or `{"base64": …}`. */
export function decodeBytes(value: Json): Uint8Array {
  const bytes = value as { text?: string; base64?: string };
  return bytes.text === undefined ? fromBase64(bytes.base64 ?? "") : new TextEncoder().encode(bytes.text);
}

function decodeFields(fields: readonly Field[], value: Json): unknown {
  const [first, second] = fields;
  if (first?.name === "0") {
    if (second === undefined) return decode(first.type, value);
    return fields.map((field, index) => decode(field.type, (value as Json[])[index] ?? null));
  }
  const members = value as Record<string, Json>;
  return Object.fromEntries(fields.map((field) => [field.name, decode(field.type, members[field.name] ?? null)]));
}

function decodeChoice(ty: Type, value: Json): unknown {
  if (typeof value === "string") return value;
  const [name, inner] = Object.entries(value as Record<string, Json>)[0] ?? ["", null];
  return new Variant(name, decodeFields(ty.variants.get(name) ?? [], inner));
}
