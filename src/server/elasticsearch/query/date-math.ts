import { millisecondsOf, offsetMs, utcTime } from '../../../engine/filter/date.ts';

/**
 * Dates as Elasticsearch's `strict_date_optional_time||epoch_millis` reads them: `2020`, `2020-01-31`, `2020-01-31T12:30:05.250Z`,
 * milliseconds since 1970, and date math: `now-1d/d`, `2020-01-31||+1M/M`.
 */
export interface DateReading {
  /** The time that `now` stands for, in milliseconds since 1970. */
  readonly now: number;
  /** Whether a time that lacks parts, or is rounded, stands for its end (the last millisecond of the day) or for its beginning. */
  readonly roundUp: boolean;
  readonly formats: readonly DateFormat[];
}

type DateFormat = 'date' | 'epoch_millis' | 'epoch_second';

/** Date formats by name. Every form of a calendar date is read alike. */
const FORMATS: ReadonlyMap<string, DateFormat> = new Map<string, DateFormat>([
  ['strict_date_optional_time', 'date'],
  ['date_optional_time', 'date'],
  ['strict_date_optional_time_nanos', 'date'],
  ['strict_date', 'date'],
  ['date', 'date'],
  ['yyyy-MM-dd', 'date'],
  ['strict_date_time', 'date'],
  ['date_time', 'date'],
  ['epoch_millis', 'epoch_millis'],
  ['epoch_second', 'epoch_second'],
]);

/** The formats of a text such as `yyyy-MM-dd||epoch_millis`; undefined if one is not known. */
export function dateFormats(text: string): readonly DateFormat[] | undefined {
  const formats = text.split('||').map((name) => FORMATS.get(name));
  return formats.includes(undefined) ? undefined : (formats as readonly DateFormat[]);
}

/** Milliseconds since 1970; undefined for a text that is not a date. */
export function parseDateMath(text: string, reading: DateReading): number | undefined {
  if (text.startsWith('now')) return applied(text.slice(3), reading.now, reading);
  const [date = '', math, ...more] = text.split('||');
  if (more.length > 0) return undefined;
  // The parts that are missing are filled up after the math.
  const found = parseDate(date, { ...reading, roundUp: reading.roundUp && math === undefined });
  return math === undefined || found === undefined ? found : applied(math, found, reading);
}

const DATE =
  /^(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(?:(\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?)?)?$/;

function parseDate(text: string, { roundUp, formats }: DateReading): number | undefined {
  const isNumber = /^-?\d{1,15}(?:\.\d+)?$/.test(text);
  for (const format of formats) {
    if (format === 'date') {
      const found = calendarDate(text, roundUp);
      if (found !== undefined) return found;
    } else if (isNumber) return Math.floor(format === 'epoch_millis' ? Number(text) : Number(text) * 1000);
  }
  return undefined;
}

function calendarDate(text: string, roundUp: boolean): number | undefined {
  const match = DATE.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => part && Number(part)) as (
    | number
    | undefined
  )[];
  // A missing month or day is the first one, also when rounded up.
  const start = utcTime({ year: year!, month: month ?? 1, day: day ?? 1, hour, minute, second });
  const offset = offsetMs(match[8] ?? 'Z', 18);
  if (start === undefined || offset === undefined) return undefined;
  if (match[7] !== undefined) return start - offset + millisecondsOf(match[7]);
  const unit = hour === undefined ? 'd' : minute === undefined ? 'h' : second === undefined ? 'm' : 's';
  return (roundUp ? start + MS[unit] - 1 : start) - offset;
}

type Unit = 'y' | 'M' | 'w' | 'd' | 'h' | 'm' | 's';
const MATH = /([+-])(\d{1,9})?([yMwdhHms])|\/([yMwdhHms])/y;

/** Adds and rounds, in the order of the text. */
function applied(math: string, from: number, { roundUp }: DateReading): number | undefined {
  let time = from;
  let at = 0;
  while (at < math.length) {
    MATH.lastIndex = at;
    const match = MATH.exec(math);
    if (match === null) return undefined;
    const [whole, sign, number, letter, rounding] = match;
    at += whole.length;
    const unit = (letter ?? rounding)!.replace('H', 'h') as Unit;
    if (rounding === undefined) {
      time = added(time, (sign === '-' ? -1 : 1) * Number(number ?? 1), unit);
    } else {
      const start = startOf(time, unit);
      time = roundUp ? added(start, 1, unit) - 1 : start;
    }
    if (!Number.isFinite(time)) return undefined;
  }
  return time;
}

const MS: Readonly<Record<Exclude<Unit, 'y' | 'M'>, number>> = {
  w: 7 * 86_400_000,
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
};

function added(time: number, count: number, unit: Unit): number {
  if (unit !== 'y' && unit !== 'M') return time + count * MS[unit];
  const date = new Date(time);
  const months = date.getUTCMonth() + (unit === 'y' ? 12 * count : count);
  const day = date.getUTCDate();
  // The last day of the month, if it has fewer days.
  const first = startOfMonth(date.getUTCFullYear(), months);
  const days = Math.round((startOfMonth(date.getUTCFullYear(), months + 1) - first) / MS.d);
  return first + (Math.min(day, days) - 1) * MS.d + (((time % MS.d) + MS.d) % MS.d);
}

function startOf(time: number, unit: Unit): number {
  const date = new Date(time);
  if (unit === 'y') return startOfMonth(date.getUTCFullYear(), 0);
  if (unit === 'M') return startOfMonth(date.getUTCFullYear(), date.getUTCMonth());
  // Weeks begin on Monday; 1970 began on a Thursday.
  const origin = unit === 'w' ? -3 * MS.d : 0;
  return origin + Math.floor((time - origin) / MS[unit]) * MS[unit];
}

/** `month` counts from 0, also beyond the year. */
function startOfMonth(year: number, month: number): number {
  return new Date(0).setUTCFullYear(year, month, 1);
}
