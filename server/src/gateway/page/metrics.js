// Rates and latencies from differences of what `/metrics` says.
//
// Invariants: a counter that fell (the replica was started anew) gives no rate for that time; the
// history is bounded in time and number.
// Not here: drawing (chart.js).

/** How far back the history reaches, milliseconds. */
export const SPAN = 5 * 60_000;
const SAMPLES_MAX = 400;
/** Over how long a time latencies are summed up, milliseconds. */
const WINDOW = 60_000;

/** Lines of the text format: a map from each series, labels included, to its number. */
export function parse(text) {
  const series = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const space = line.lastIndexOf(" ");
    series.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return series;
}

/** What was sampled: at which moment, which series, and how long the page's own read took. */
export class History {
  samples = [];

  add(at, series, roundTrip) {
    const plain = new Map([...series].filter(([name]) => !name.includes("{")));
    this.samples.push({ at, series: plain, calls: buckets(series), roundTrip });
    while (this.samples.length > SAMPLES_MAX || this.samples[0].at < at - SPAN) this.samples.shift();
  }

  /** The latest value of a gauge. */
  latest(name) {
    return this.samples.at(-1)?.series.get(name) ?? null;
  }

  gauge(name) {
    return this.samples.map(({ at, series }) => ({ at, value: series.get(name) ?? null }));
  }

  roundTrips() {
    return this.samples.map(({ at, roundTrip }) => ({ at, value: roundTrip }));
  }

  /** A counter's rate a second between each two samples. */
  rate(name) {
    return pairs(this.samples).map(([before, after]) => {
      const rise = after.series.get(name) - before.series.get(name);
      return { at: after.at, value: rise >= 0 ? (rise * 1000) / (after.at - before.at) : null };
    });
  }

  /** A quantile of the calls between each two samples, in seconds. */
  callTimes(quantile) {
    return pairs(this.samples).map(([before, after]) => ({
      at: after.at,
      value: between(before, after, quantile),
    }));
  }

  /** A quantile of the calls of the last minute, in seconds. */
  recentCallTime(quantile) {
    const newest = this.samples.at(-1);
    const oldest = this.samples.find(({ at }) => newest && at >= newest.at - WINDOW);
    return oldest && oldest !== newest ? between(oldest, newest, quantile) : null;
  }
}

function pairs(samples) {
  return samples.slice(1).map((sample, index) => [samples[index], sample]);
}

const CALLS = /^gesmas_http_request_seconds_bucket\{/;
const ROUTE = 'route="/v1/objects/{class}/{object}/{method}"';

/** Calls of methods by the bound of their bucket, cumulated as Prometheus does. */
function buckets(series) {
  const found = new Map();
  for (const [name, number] of series) {
    if (!CALLS.test(name) || !name.includes(ROUTE)) continue;
    const bound = Number(/le="([^"]+)"/.exec(name)[1].replace("+Inf", "Infinity"));
    found.set(bound, (found.get(bound) ?? 0) + number);
  }
  return found;
}

/** A quantile of what came between two samples, interpolated within its bucket. */
function between(before, after, quantile) {
  const [old, now] = [before.calls, after.calls];
  const bounds = [...now.keys()].sort((one, other) => one - other);
  const counts = bounds.map((bound) => now.get(bound) - (old.get(bound) ?? 0));
  const total = counts.at(-1);
  if (!total || counts.some((number) => number < 0)) return null;
  const rank = quantile * total;
  const index = counts.findIndex((number) => number >= rank);
  const low = index === 0 ? 0 : bounds[index - 1];
  const below = index === 0 ? 0 : counts[index - 1];
  if (bounds[index] === Infinity) return low;
  return low + ((bounds[index] - low) * (rank - below)) / (counts[index] - below);
}
