import { TrawlError } from '../../base/errors.ts';
import type { Filter } from '../../engine/filter/filter.ts';

/** Whether a text may name a view: it must be safe in a URL path, a header and a log line. */
export function isViewName(text: string): boolean {
  return /^[\w.-]{1,64}$/.test(text);
}

/** A date bound. It has no default for passages without a date. */
export interface DateBound {
  /** A column of dates. */
  readonly column: string;
  /** A passage with at least one date at or after this one is not in the view. */
  readonly before: string;
  /** Whether passages without a date are in the view. */
  readonly undated: 'keep' | 'drop';
}

/** A named restriction of an index, which an operator defines. A passage is in the view if every part lets it in. */
export interface ViewDefinition {
  readonly name: string;
  /** Names of the indexes that have the view. Default: all. */
  readonly indexes?: readonly string[];
  /** Only passages that pass the filter are in the view. */
  readonly filter?: Filter;
  readonly date?: DateBound;
  /** A file of the rows that may be in the view, one row number a line. Needs `generation`. */
  readonly rows?: string;
  /** The generation of the index whose rows `rows` lists. */
  readonly generation?: string;
  /** Files of ids, one a line: passages with one of them are not in the view. */
  readonly blockIds?: readonly string[];
  /** Files of titles, one a line: passages with one of them are not in the view. */
  readonly blockTitles?: readonly string[];
  /**
   * Whether an index opens although entries of a block list match no passage of it. Default: it does if another entry of that list matches.
   */
  readonly unmatched?: 'refuse' | 'allow';
}

/** The filter of a view: its own filter and its date bound. */
export function filterOfView({ filter, date }: Pick<ViewDefinition, 'filter' | 'date'>): Filter | undefined {
  if (date === undefined) return filter;
  const { column, before, undated } = date;
  // A row without a date passes `not date >= …`.
  const bound: Filter = { not: { column, op: '>=', value: before } };
  const parts = [...(filter === undefined ? [] : [filter]), bound];
  return { and: undated === 'keep' ? parts : [...parts, { column, op: 'exists' }] };
}

/** The error for a view that an index does not have. */
export function unknownView(name: string, index: string, known: readonly string[]): TrawlError {
  const has = known.length === 0 ? 'no views' : known.slice(0, 20).join(', ');
  return new TrawlError(
    'NOT_FOUND',
    `The index ${index} has no view ${JSON.stringify(name.slice(0, 100))}; it has ${has}.`,
    { details: { param: 'view' } },
  );
}
