import type { RecordedQuery } from '../records/recorded-query.ts';

/** What an id is unique with, in the order in which it is written. */
const NAMES = ['dataset', 'policy', 'step', 'split'] as const;

/** An id that could be read as one with names. */
const NAMED = /^(dataset|policy|step|split|trajectory)=/;

/**
 * The id of a recorded trajectory for people and files: the recorded one, or `dataset=D/policy=P/step=N/split=S/trajectory=ID` of what the
 * record names. `/` and `%` in names are written in percent encoding, so that different trajectories have different ids.
 */
export function trajectoryId(record: Pick<RecordedQuery, (typeof NAMES)[number]>, trajectory: string): string {
  const named = NAMES.flatMap((name) => {
    const value = record[name];
    return value === undefined ? [] : [`${name}=${String(value).replace(/[%/]/g, encodeURIComponent)}`];
  });
  if (named.length === 0 && !NAMED.test(trajectory)) return trajectory;
  return [...named, `trajectory=${trajectory}`].join('/');
}
