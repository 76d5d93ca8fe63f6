import { median, sortedSamples } from '../src/base/statistics.ts';
import { markdownTable } from './report-format.ts';

/** A record that `trawl bench CASE --json` prints. Every field is optional, because old versions have fewer fields. */
type BenchRecord = Readonly<Record<string, unknown>>;

/** The records of one round, of both checkouts. */
export interface Round {
  readonly old: readonly BenchRecord[];
  readonly new: readonly BenchRecord[];
}

type Better = 'higher' | 'lower';

/** For each case: the field that identifies a record, and the figures to compare. */
const CASES: Readonly<Record<string, { key: string; figures: Readonly<Record<string, Better>> }>> = {
  flat: { key: 'case', figures: { medianMs: 'lower', p95Ms: 'lower', residentBytes: 'lower' } },
  embed: {
    key: 'precision',
    figures: { textsPerS: 'higher', queryP50Ms: 'lower', queryP99Ms: 'lower', residentBytes: 'lower' },
  },
  index: {
    key: 'encoder',
    figures: { passagesPerS: 'higher', ratioToEncoding: 'lower', peakMemoryBytes: 'lower', indexBytes: 'lower' },
  },
  serve: {
    key: 'load',
    figures: {
      queriesPerS: 'higher',
      p50Ms: 'lower',
      p99Ms: 'lower',
      overheadP50Ms: 'lower',
      errors: 'lower',
      wrong: 'lower',
    },
  },
  bm25: {
    key: 'case',
    figures: {
      queriesPerS: 'higher',
      meanMs: 'lower',
      p50Ms: 'lower',
      p99Ms: 'lower',
      postingsReadShare: 'lower',
      indexBytes: 'lower',
      buildMbPerS: 'higher',
      analysisMbPerS: 'higher',
      openMs: 'lower',
    },
  },
  filter: { key: 'case', figures: { evaluateMs: 'lower', cachedMs: 'lower', medianMs: 'lower' } },
};

export const COMPARED_CASES: readonly string[] = Object.keys(CASES);

/** One figure of one record in both checkouts. */
export interface ComparedFigure {
  readonly record: string;
  readonly figure: string;
  readonly better: Better;
  /** Medians over the rounds. */
  readonly old: number;
  readonly new: number;
  /** For each round the ratio of the two figures; above 1 the new checkout is better. Empty if a figure is 0. */
  readonly gains: readonly number[];
}

/** The figures that both checkouts have in every round. */
export function compare(benchCase: string, rounds: readonly Round[]): ComparedFigure[] {
  const { key, figures } = CASES[benchCase]!;
  const compared: ComparedFigure[] = [];
  const [before, after] = [rounds.map((round) => named(round.old, key)), rounds.map((round) => named(round.new, key))];
  for (const record of before[0]?.keys() ?? []) {
    for (const [figure, better] of Object.entries(figures)) {
      const oldValues = before.map((records) => records.get(record)?.[figure]);
      const newValues = after.map((records) => records.get(record)?.[figure]);
      if (!isNumbers(oldValues) || !isNumbers(newValues)) continue;
      const gains = oldValues.map((value, i) => (better === 'higher' ? newValues[i]! / value : value / newValues[i]!));
      compared.push({
        record,
        figure,
        better,
        old: median(sortedSamples(oldValues)),
        new: median(sortedSamples(newValues)),
        gains: gains.every(Number.isFinite) ? gains : [],
      });
    }
  }
  return compared;
}

/**
 * Records by name. Records with the same key, such as the servers of a load, get numbers, because engines have other names in
 * other versions.
 */
function named(records: readonly BenchRecord[], key: string): Map<string, BenchRecord> {
  const byName = new Map<string, BenchRecord>();
  for (const record of records) {
    const name = String(record[key]);
    const earlier = records.slice(0, records.indexOf(record)).filter((other) => String(other[key]) === name).length;
    byName.set(earlier === 0 ? name : `${name} (${earlier + 1})`, record);
  }
  return byName;
}

/** A Markdown table: for each figure the medians, the median of the gains, and the range of the gains over the rounds. */
export function comparisonTable(compared: readonly ComparedFigure[]): string {
  const header = ['figure', 'record', 'old', 'new', 'gain', 'lowest to highest round'];
  const lines = compared.map(({ record, figure, old, new: after, gains }) => {
    if (gains.length === 0) return [figure, record, format(old), format(after), '', ''];
    const sorted = sortedSamples(gains);
    const range = `${sorted[0].toFixed(2)} to ${sorted.at(-1)!.toFixed(2)}`;
    return [figure, record, format(old), format(after), `${median(sorted).toFixed(2)} ×`, range];
  });
  return markdownTable(header, lines).join('\n');
}

function isNumbers(values: readonly unknown[]): values is number[] {
  return values.length > 0 && values.every((value) => typeof value === 'number');
}

function format(value: number): string {
  return value >= 1e6 ? `${(value / 1e6).toFixed(1)} M` : value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
