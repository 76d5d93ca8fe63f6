import { millisecondsOf, offsetMs, utcTime } from './utc-time.ts';

const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|[+-]\d{2}:\d{2})?)?$/;

/** For messages. */
export const DATE_FORMATS = '2020-01-31 or 2020-01-31T12:30:00Z';

/**
 * Milliseconds since 1970 of a date (`2020-01-31`, midnight in UTC) or of a time (`2020-01-31T12:30`, with seconds, a fraction and
 * an offset such as `+02:00` if wanted; UTC without an offset). Parts of a millisecond are dropped. Undefined for any other text,
 * and for days that do not exist. `Date.parse` accepts far more, and its results depend on the machine's time zone.
 */
export function parseDate(text: string): number | undefined {
  const match = DATE.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const millisecond = millisecondsOf(match[7] ?? '');
  const time = utcTime({ year, month, day, hour, minute, second, millisecond });
  const offset = offsetMs(match[8] ?? 'Z', 23);
  return time === undefined || offset === undefined ? undefined : time - offset;
}
