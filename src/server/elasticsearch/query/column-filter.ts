import type { Column } from '../../../engine/filter/column.ts';
import { BOUND_NAMES, type BoundName, type Filter, type FilterValue } from '../../../engine/filter/filter.ts';
import { dateFormats, parseDateMath } from './date-math.ts';
import type { DslQuery, DslValue } from './dsl-query.ts';

/** Why a value cannot be compared with a column; a shard of Elasticsearch fails with it. */
export class WrongColumnValue extends Error {
  /** Whether it is a text that is no date. */
  readonly isDate: boolean;

  constructor(reason: string, { isDate = false } = {}) {
    super(reason);
    this.isDate = isDate;
  }
}

/** How the values of a query are read. */
export interface ValueReading {
  /** The time that `now` stands for, in milliseconds since 1970. */
  readonly now: number;
}

type RangeQuery = Extract<DslQuery, { type: 'range' }>;

/** The rows with one of these values. A date such as `2020-01-31` is the whole day, as in Elasticsearch. */
export function termsFilter(column: Column, terms: readonly DslValue[], reading: ValueReading): Filter {
  if (column.type !== 'date') {
    return { column: column.name, op: 'in', values: terms.map(({ text }) => exactValue(column, text)) };
  }
  const days = terms.map((term): Filter => {
    const range = { gte: term, lte: term };
    return rangeFilter(column, { bounds: range, format: undefined }, reading);
  });
  return days.length === 0 ? { column: column.name, op: 'in', values: [] } : { or: days };
}

/** The rows with a value within the bounds; those with any value if there are none. */
export function rangeFilter(
  column: Column,
  { bounds, format }: Pick<RangeQuery, 'bounds' | 'format'>,
  reading: ValueReading,
): Filter {
  // A number says that both bounds are milliseconds.
  const hasNumber = BOUND_NAMES.some((name) => bounds[name]?.isNumber);
  const formats = format ?? (hasNumber ? 'epoch_millis' : 'strict_date_optional_time||epoch_millis');
  const named = BOUND_NAMES.flatMap((name): [BoundName, FilterValue][] => {
    const text = bounds[name]?.text;
    return text === undefined ? [] : [[name, boundOf(column, { name, text, formats }, reading)]];
  });
  if (named.length === 0) return { column: column.name, op: 'exists' };
  const values = Object.fromEntries(named) as { [Name in BoundName]?: FilterValue };
  if (column.type === 'boolean') return booleanRange(column.name, values);
  return { column: column.name, op: 'range', ...values };
}

interface BoundText {
  readonly name: BoundName;
  readonly text: string;
  /** With `||` in between. */
  readonly formats: string;
}

function boundOf(column: Column, { name, text, formats: wanted }: BoundText, reading: ValueReading): FilterValue {
  if (column.type !== 'date') return exactValue(column, text);
  const formats = dateFormats(wanted);
  if (formats === undefined) throw new WrongColumnValue(`the date format [${wanted.slice(0, 100)}] is not supported`);
  // A day as the bound of `gt` and `lte` stands for its end, as that of `gte` and `lt` for its beginning.
  const time = parseDateMath(text, { ...reading, formats, roundUp: name === 'gt' || name === 'lte' });
  if (time !== undefined) return dateText(time);
  throw new WrongColumnValue(`failed to parse date field [${text.slice(0, 100)}] with format [${wanted}]`, {
    isDate: true,
  });
}

/** Dates of columns have years of four digits. */
const [FIRST_DATE, LAST_DATE] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

function dateText(time: number): string {
  return new Date(Math.min(Math.max(time, FIRST_DATE), LAST_DATE)).toISOString();
}

function exactValue({ name, type }: Column, text: string): FilterValue {
  if (type === 'number') {
    if (/^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/.test(text) && Number.isFinite(Number(text)))
      return Number(text);
    throw new WrongColumnValue(`For input string: "${text.slice(0, 100)}"`);
  }
  if (type === 'boolean') {
    if (text === 'true') return true;
    if (text === 'false' || text === '') return false;
    throw new WrongColumnValue(
      `Can't parse boolean value [${text.slice(0, 100)}], expected [true] or [false] in [${name}]`,
    );
  }
  return text;
}

/** False is before true. */
function booleanRange(column: string, { gt, gte, lt, lte }: { readonly [Name in BoundName]?: FilterValue }): Filter {
  const values = [false, true].filter((value) => {
    const above = gt !== undefined ? Number(value) > Number(gt) : gte === undefined || Number(value) >= Number(gte);
    const below = lt !== undefined ? Number(value) < Number(lt) : lte === undefined || Number(value) <= Number(lte);
    return above && below;
  });
  return { column, op: 'in', values };
}
