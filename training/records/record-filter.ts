import { usageError } from '../../src/base/errors.ts';
import type { RecordHead } from './recorded-query.ts';

const SELECTED_FIELDS = [
  'trajectory',
  'generation',
  'dialect',
  'index',
  'policy',
  'dataset',
  'split',
] as const satisfies (keyof RecordHead)[];

/** Which records are selected. An empty list selects any value. */
type RecordSelection = Readonly<Record<(typeof SELECTED_FIELDS)[number], readonly string[]>> & {
  /** Selects times from `since` and before `until`, as ISO 8601 texts of dates or times. */
  readonly since?: string;
  readonly until?: string;
};

/** @throws TrawlError USAGE for a time that cannot be read. */
export function recordFilter(selection: RecordSelection): (record: RecordHead) => boolean {
  const since = instant('since', selection.since);
  const until = instant('until', selection.until);
  const wanted = SELECTED_FIELDS.flatMap((name) =>
    selection[name].length === 0 ? [] : [[name, new Set(selection[name])] as const],
  );
  return (record) =>
    (since === undefined || record.time >= since) &&
    (until === undefined || record.time < until) &&
    wanted.every(([name, values]) => {
      const value = record[name];
      return value !== undefined && values.has(value);
    });
}

/** The time as records have it. A date is its beginning, and a time without a zone is in UTC. */
function instant(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const match = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/.exec(text);
  const [, time, zone] = match ?? [];
  const date = new Date(match === null ? Number.NaN : time === undefined || zone !== undefined ? text : `${text}Z`);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  throw usageError(
    `--${name} is ${JSON.stringify(text)}; expected a date or time such as 2026-11-23 or 2026-11-23T14:00:00Z.`,
  );
}
