import type { Filter } from '../../engine/filter/filter.ts';

/** What a view may be called: safe in a URL path, a header and a log line. */
const VIEW_NAME = /^[\w.-]{1,64}$/;

export function isViewName(text: string): boolean {
  return VIEW_NAME.test(text);
}

/** A date bound. It has no default for passages without a date. */
export interface DateBound {
  /** A column of dates. */
  readonly column: string;
  /** Passages with a date at or after this one are not in the view; of several dates, one is enough. */
  readonly before: string;
  /** Whether passages without a date are in the view. */
  readonly undated: 'keep' | 'drop';
}

/** A named restriction of an index, which an operator defines. A passage is in the view if every part lets it in. */
export interface ViewDefinition {
  readonly name: string;
  /** Names of the indexes that have the view. Default: all. */
  readonly indexes?: readonly string[];
  /** Passages that do not pass are not in the view. */
  readonly filter?: Filter;
  readonly date?: DateBound;
  /** A file of the rows that may be in the view, one row number a line. Needs `generation`. */
  readonly rows?: string;
  /** The generation of the index that `rows` lists rows of. */
  readonly generation?: string;
  /** Files of ids, one a line: passages with one of them are not in the view. */
  readonly blockIds?: readonly string[];
  /** Files of titles, one a line: passages with one of them are not in the view. */
  readonly blockTitles?: readonly string[];
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
