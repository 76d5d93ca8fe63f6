import { illegalArgument } from './elasticsearch-error.ts';

/** Milliseconds by unit. */
export const TIME_UNITS: ReadonlyMap<string, number> = new Map([
  ['nanos', 1e-6],
  ['micros', 1e-3],
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
/** The longest time of a timer. */
const MAX_MS = 2 ** 31 - 1;

/** A time such as `500ms` or `2s` in milliseconds, at least 1; undefined for `-1`, no limit. @throws ElasticsearchError */
export function milliseconds(text: string, name: string): number | undefined {
  if (text === '-1') return undefined;
  const match = /^(\d{1,15})(nanos|micros|ms|s|m|h|d)$/.exec(text.trim().toLowerCase());
  if (match === null) {
    throw illegalArgument(
      `failed to parse setting [${name}] with value [${text.slice(0, 100)}] as a time value: unit is missing or unrecognized`,
    );
  }
  return Math.min(MAX_MS, Math.max(1, Math.ceil(Number(match[1]) * TIME_UNITS.get(match[2]!)!)));
}
