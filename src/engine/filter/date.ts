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

/** The parts of a date and time; the month counts from 1. */
interface TimeParts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour?: number;
  readonly minute?: number;
  readonly second?: number;
  readonly millisecond?: number;
}

/** Milliseconds since 1970 in UTC. Undefined for a day or a time of day that does not exist. */
export function utcTime({
  year,
  month,
  day,
  hour = 0,
  minute = 0,
  second = 0,
  millisecond = 0,
}: TimeParts): number | undefined {
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  // Date.UTC takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.setUTCHours(hour, minute, second, millisecond);
}

/** The milliseconds of a fraction of a second, such as `25` for 0.25 s. Parts of a millisecond are dropped. */
export function millisecondsOf(fraction: string): number {
  return Number(fraction.padEnd(3, '0').slice(0, 3));
}

/** The milliseconds of `Z` or of an offset such as `+02:00`, `+0200` or `+02`. Undefined for more hours than `mostHours`. */
export function offsetMs(text: string, mostHours: number): number | undefined {
  if (text === 'Z') return 0;
  const hours = Number(text.slice(1, 3));
  const minutes = Number(text.slice(3).replace(':', '') || '0');
  if (hours > mostHours || minutes > 59) return undefined;
  return (text.startsWith('-') ? -1 : 1) * (60 * hours + minutes) * 60_000;
}
