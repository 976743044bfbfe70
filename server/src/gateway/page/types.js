// Types of a class's interface: what a form asks for, and the JSON of what was typed.
//
// Types come as documentation writes them (`map<text, list<u32>>`), records and choices by name.
// Invariant: integers are sent as texts of digits, whatever their width, so none is rounded.
// Not here: whether a value is of its type. The gateway checks that, and says what is wrong.

const INTEGER = /^[iu](8|16|32|64|128)$/;
const BYTES = /^bytes(<\d+>)?$/;
const OPTION = /^option<(.*)>$/;

/** What a form shows for a type: the kind of field, a hint, and the choices if there are few. */
export function field(type, types) {
  const inner = OPTION.exec(type)?.[1];
  if (inner !== undefined) {
    const of = field(inner, types);
    if (of.kind === "select") return { ...of, choices: ["", ...of.choices], optional: true };
    return { ...of, hint: `${of.hint}; empty for none`, optional: true };
  }
  if (type === "bool") return { kind: "select", choices: ["false", "true"], hint: type };
  if (INTEGER.test(type)) return { kind: "line", hint: type, numeric: true };
  if (BYTES.test(type)) return { kind: "line", hint: `${type}: a text, or {"base64": "…"}` };
  if (type === "text") return { kind: "line", hint: "text" };
  if (type === "duration") return { kind: "line", hint: "duration, such as 30s or 250ms" };
  if (type === "time") return { kind: "line", hint: "time, such as 2026-11-27T10:00:00Z" };
  const variants = types[type]?.choice;
  if (variants?.every((variant) => variant.fields.length === 0)) {
    return { kind: "select", choices: variants.map((variant) => variant.name), hint: type };
  }
  return { kind: "lines", hint: `JSON of ${describe(type, types)}` };
}

/** Fields as the JSON of values has them: one without a name stands for itself. */
function shape(fields) {
  if (fields.length === 1 && fields[0].name === "0") return fields[0].type;
  if (fields[0]?.name === "0") return `[${fields.map(({ type }) => type).join(", ")}]`;
  return `{${fields.map(({ name, type }) => `${name}: ${type}`).join(", ")}}`;
}

/** A type with what its names stand for. */
export function describe(type, types) {
  const expand = (name) => {
    const { record, choice } = types[name];
    if (record) return `${name} is ${shape(record)}`;
    const variants = choice.map(({ name, fields }) =>
      fields.length === 0 ? `"${name}"` : `{"${name}": ${shape(fields)}}`,
    );
    return `${name} is ${variants.join(" or ")}`;
  };
  const named = Object.keys(types).filter((name) =>
    new RegExp(`(^|[^A-Za-z0-9_])${name}([^A-Za-z0-9_]|$)`).test(type),
  );
  const explained = named.map(expand).join("; ");
  if (named.length === 1 && named[0] === type) return explained;
  return explained === "" ? type : `${type}; ${explained}`;
}

/** The JSON of what was typed for a type. Throws a sentence if it is none. */
export function value(type, typed) {
  const inner = OPTION.exec(type)?.[1];
  if (inner !== undefined) return typed.trim() === "" ? null : value(inner, typed);
  if (type === "bool") return typed === "true";
  if (INTEGER.test(type)) return typed.trim();
  if (BYTES.test(type)) return bytes(typed);
  if (["text", "duration", "time"].includes(type)) return typed;
  if (type === "unit") return null;
  try {
    return JSON.parse(typed);
  } catch {
    // The name of a variant may stand without quotes.
    if (/^\w+$/.test(typed.trim())) return typed.trim();
    throw new Error(`it is no JSON of ${type}`);
  }
}

/** Bytes are a text, unless what was typed is an object that stands for bytes. */
function bytes(typed) {
  try {
    const parsed = JSON.parse(typed);
    const keys = parsed && typeof parsed === "object" ? Object.keys(parsed) : [];
    if (keys.length === 1 && ["base64", "text"].includes(keys[0])) return parsed;
  } catch {
    // It is a text then.
  }
  return { text: typed };
}

/** A method as documentation writes it. */
export function signature(method) {
  const parameters = method.parameters.map(({ name, type }) => `${name}: ${type}`).join(", ");
  const result = method.result === "unit" ? "" : ` → ${method.result}`;
  return `${method.name}(${parameters})${result}`;
}
