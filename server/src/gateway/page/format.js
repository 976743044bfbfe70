// Numbers, times and sizes as people read them.
//
// Invariant: numbers of 64 bits come as texts of digits and are never made into floats on the way
// to the screen; what is rounded is marked by its unit.

const NARROW = "\u202f";
export const NOTHING = "–";

/** Digits in groups of three. */
export function count(digits) {
  if (digits === null || digits === undefined) return NOTHING;
  const text = String(digits);
  return /^-?\d+$/.test(text) ? text.replace(/\B(?=(\d{3})+$)/g, NARROW) : text;
}

/** A rate or other small number, with as many places as matter. */
export function decimal(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOTHING;
  if (value === 0) return "0";
  if (value < 10) return value.toFixed(value < 0.095 ? 2 : 1);
  return count(Math.round(value));
}

/** Bytes. */
export function bytes(digits) {
  const size = Number(digits);
  if (size < 1024) return `${count(digits)} B`;
  const kibibytes = size / 1024;
  return kibibytes < 1024 ? `${decimal(kibibytes)} KiB` : `${decimal(kibibytes / 1024)} MiB`;
}

/** Seconds in the unit that fits. */
export function seconds(value) {
  if (value === null || value === undefined) return NOTHING;
  if (value < 0.9995) return `${decimal(value * 1000)} ms`;
  return duration(value * 1000);
}

/** Milliseconds as `4.2 s`, `3m 04s`, `2h 10m`. */
export function duration(milliseconds) {
  const total = Math.max(0, milliseconds) / 1000;
  if (total < 59.95) return `${total.toFixed(1)} s`;
  const whole = Math.round(total);
  const two = (number) => String(number).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours}h ${two(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(hours / 24)}d ${two(hours % 24)}h`;
}

/** The time of day of `2026-11-27T10:00:00.123Z`, and the date where it is not today's. */
export function clock(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time : `${at.toISOString().slice(0, 10)} ${time}`;
}

/** Documentation as it was meant: a line break within a paragraph is where the source was wrapped. */
export function prose(docs) {
  return docs.replace(/(\S)\n(?=[^\s*|#-])/g, "$1 ");
}

/** The beginning of a hash. */
export function short(hash) {
  return hash ? hash.slice(0, 12) : NOTHING;
}

/** A value as one line of JSON, so far as it is short. */
export function json(value) {
  return value === null ? NOTHING : JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
}
