import { createHash } from 'node:crypto';

export const COMPARISONS = ['=', '!=', '<', '<=', '>', '>='] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** A date is a string. */
export type FilterValue = string | number | boolean;

/**
 * Which rows a search may return, by the columns of the corpus. This is also the form of filters in JSON. A column has any number
 * of values in a row (docs/filters.md):
 * - `=`, `<`, `<=`, `>`, `>=` and `in` hold if they hold for at least one of the values; so they do not hold for a row without one.
 * - `range` holds if one value lies within all of its bounds. Two comparisons may hold for different values.
 * - `exists` holds if the row has a value.
 * - `!=` is the negation of `=`, and `not` of its filter: a row without a value passes `!=`.
 */
export type Filter =
  | { readonly and: readonly Filter[] }
  | { readonly or: readonly Filter[] }
  | { readonly not: Filter }
  | { readonly column: string; readonly op: Comparison; readonly value: FilterValue }
  | { readonly column: string; readonly op: 'in'; readonly values: readonly FilterValue[] }
  | ({ readonly column: string; readonly op: 'range' } & FilterBounds)
  | { readonly column: string; readonly op: 'exists' };

/** At least one bound; not both of `gt` and `gte`, nor of `lt` and `lte`. */
export type FilterBounds = { readonly [Name in BoundName]?: FilterValue };
export const BOUND_NAMES = ['gt', 'gte', 'lt', 'lte'] as const;
export type BoundName = (typeof BOUND_NAMES)[number];

/** Limits that keep a filter from a request small. */
export const MAX_FILTER_DEPTH = 32;
export const MAX_FILTER_NODES = 1_000;
export const MAX_FILTER_VALUES = 10_000;

/**
 * The filter as text. Filters that differ only in the order or the repetition of their parts have the same text; filters with the
 * same text let the same rows pass.
 */
export function canonicalFilter(filter: Filter): string {
  return canonicalText(normalized(filter));
}

/** A filter without groups within a group of the same operator, repeated parts, groups of one part, and double negation. */
function normalized(filter: Filter): Filter {
  if ('and' in filter) return group('and', filter.and);
  if ('or' in filter) return group('or', filter.or);
  if (!('not' in filter)) return filter.op === '!=' ? { not: { ...filter, op: '=' } } : filter;
  const inner = normalized(filter.not);
  return 'not' in inner ? inner.not : { not: inner };
}

function group(operator: 'and' | 'or', filters: readonly Filter[]): Filter {
  const parts = filters.map(normalized).flatMap((part): readonly Filter[] => {
    if (operator === 'and') return 'and' in part ? part.and : [part];
    return 'or' in part ? part.or : [part];
  });
  const distinct = [...new Map(parts.map((part) => [canonicalText(part), part])).values()];
  if (distinct.length === 1) return distinct[0]!;
  return operator === 'and' ? { and: distinct } : { or: distinct };
}

const BOUND_SIGNS: Readonly<Record<BoundName, Comparison>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

/** The text of a normalized filter. */
function canonicalText(filter: Filter): string {
  if ('and' in filter) return `and[${filter.and.map(canonicalText).sort().join(',')}]`;
  if ('or' in filter) return `or[${filter.or.map(canonicalText).sort().join(',')}]`;
  if ('not' in filter) return `not[${canonicalText(filter.not)}]`;
  const column = JSON.stringify(filter.column);
  if (filter.op === 'exists') return `exists[${column}]`;
  if (filter.op === 'in') {
    const values = [...new Set(filter.values.map((value) => JSON.stringify(value)))].sort();
    return `in[${column},${values.join(',')}]`;
  }
  if (filter.op === 'range') {
    const bounds = BOUND_NAMES.filter((name) => filter[name] !== undefined);
    const [only, ...more] = bounds.map((name) => `${BOUND_SIGNS[name]}[${column},${JSON.stringify(filter[name])}]`);
    // A range with one bound is a comparison.
    return more.length === 0 ? only! : `range[${[only, ...more].join(',')}]`;
  }
  const value = JSON.stringify(filter.value);
  return filter.op === '=' ? `in[${column},${value}]` : `${filter.op}[${column},${value}]`;
}

const keys = new WeakMap<Filter, string>();

/** A short text for the keys of caches, computed once for each object. Filters with the same key let the same rows pass. */
export function filterKey(filter: Filter): string {
  const known = keys.get(filter);
  if (known !== undefined) return known;
  const key = createHash('sha256').update(canonicalFilter(filter)).digest('base64url');
  keys.set(filter, key);
  return key;
}

/** The rows that pass both filters; a missing one lets all rows pass. */
export function bothFilters(one: Filter | undefined, other: Filter | undefined): Filter | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return { and: [one, other] };
}
