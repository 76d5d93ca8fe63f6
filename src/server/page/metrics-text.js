/** Reads the text of GET /metrics, and what charts and figures need from two readings. */

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The samples by metric name, each with its labels and value. */
export function parseMetrics(text) {
  const metrics = new Map();
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : LINE.exec(line);
    if (match === null) continue;
    const [, name, inBraces = '', value] = match;
    const labels = Object.fromEntries([...inBraces.matchAll(LABEL)].map(([, label, text]) => [label, text]));
    const samples = metrics.get(name) ?? [];
    samples.push({ labels, value: Number(value) });
    metrics.set(name, samples);
  }
  return metrics;
}

/** The sum of a metric's samples, or NaN if the server does not have it. */
export function total(metrics, name) {
  const samples = metrics.get(name);
  return samples === undefined ? Number.NaN : samples.reduce((sum, { value }) => sum + value, 0);
}

/** Sums by a label; with `combine` of `Math.max`, the largest value. */
export function byLabel(metrics, name, label, combine = (a, b) => a + b) {
  const values = {};
  for (const { labels, value } of metrics.get(name) ?? []) {
    const key = labels[label] ?? '';
    values[key] = key in values ? combine(values[key], value) : value;
  }
  return values;
}

export function sum(values) {
  return Object.values(values).reduce((total, value) => total + value, 0);
}

/**
 * What a counter gained between two readings, by label; with `seconds`, for each second. A counter that begins at 0 after a restart
 * counts from there.
 */
export function gained(before, after, name, label, seconds = 1) {
  const old = byLabel(before, name, label);
  return Object.fromEntries(
    Object.entries(byLabel(after, name, label)).map(([key, value]) => {
      const past = old[key] ?? 0;
      return [key, (value >= past ? value - past : value) / seconds];
    }),
  );
}

/** Quotients by key; `null`, which a chart leaves out, where nothing was counted. */
export function quotients(sums, counts, factor = 1) {
  return Object.fromEntries(
    Object.entries(sums).map(([key, sum]) => [key, counts[key] > 0 ? (factor * sum) / counts[key] : null]),
  );
}

/**
 * The quantile of what a histogram gained between two readings, linear within a bucket; `null` if it gained nothing. `only` are the
 * labels of the wanted samples.
 */
export function quantile(before, after, name, only, q) {
  const buckets = (metrics) =>
    new Map(
      (metrics.get(`${name}_bucket`) ?? [])
        .filter(({ labels }) => Object.entries(only).every(([label, value]) => labels[label] === value))
        .map(({ labels, value }) => [labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le), value]),
    );
  const old = buckets(before);
  const counts = [...buckets(after)]
    .map(([bound, value]) => [bound, value - (old.get(bound) ?? 0)])
    .sort(([a], [b]) => a - b);
  const all = counts.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  const wanted = q * all;
  let [low, below] = [0, 0];
  for (const [bound, count] of counts) {
    if (count >= wanted) {
      if (!Number.isFinite(bound)) return low;
      return low + ((bound - low) * (wanted - below)) / Math.max(1e-12, count - below);
    }
    [low, below] = [bound, count];
  }
  return low;
}
