import type { BoundName } from '../../../engine/filter/filter.ts';

/**
 * A query of Elasticsearch's query DSL as it was written, before it is related to an index: fields may be unknown there, and ids
 * are not rows yet.
 */
export type DslQuery = Boosted &
  (
    | ({ readonly type: 'match'; readonly field: string } & TextSearch)
    | ({
        readonly type: 'multi-match';
        readonly fields: readonly FieldPattern[];
        readonly tieBreaker: number;
      } & TextSearch)
    | { readonly type: 'term'; readonly field: string; readonly term: DslValue }
    | { readonly type: 'terms'; readonly field: string; readonly terms: readonly DslValue[] }
    | ({ readonly type: 'range'; readonly field: string } & DslRange)
    | DslKnn
    | { readonly type: 'ids'; readonly ids: readonly string[] }
    | { readonly type: 'exists'; readonly field: string }
    | {
        readonly type: 'bool';
        readonly must: readonly DslQuery[];
        readonly should: readonly DslQuery[];
        readonly filter: readonly DslQuery[];
        readonly mustNot: readonly DslQuery[];
        readonly minimumShouldMatch: string | undefined;
        /** Whether a bool of only `must_not` matches the other passages. */
        readonly adjustPureNegative: boolean;
      }
    | { readonly type: 'dis-max'; readonly queries: readonly DslQuery[]; readonly tieBreaker: number }
    | { readonly type: 'constant-score'; readonly filter: DslQuery }
    | { readonly type: 'match-all' }
    | { readonly type: 'match-none' }
  );

interface Boosted {
  readonly boost: number;
}

/** A value as it was written. A number is a date in milliseconds, where a text has other formats, too. */
export interface DslValue {
  readonly text: string;
  readonly isNumber: boolean;
}

export interface DslRange {
  readonly bounds: { readonly [Name in BoundName]?: DslValue };
  /** Formats of dates with `||` in between; undefined: Elasticsearch's default. */
  readonly format: string | undefined;
}

/** The passages whose vectors are nearest. */
export interface DslKnn {
  readonly type: 'knn';
  readonly field: string;
  readonly vector: readonly number[];
  /** Passages of each index; undefined: the size of the search. */
  readonly k: number | undefined;
  /** Similarity, as the metric of the index has it, below which passages do not match; undefined: none. */
  readonly similarity: number | undefined;
  /** Queries that a passage must match to be among the nearest. */
  readonly filter: readonly DslQuery[];
}

export type BoostedKnn = DslKnn & Boosted;

/** The parts of `match`, and of `multi_match` in each of its fields. */
export interface TextSearch {
  readonly text: string;
  readonly operator: 'or' | 'and';
  /** As written, such as `2`, `-25%` or `3<90%`. */
  readonly minimumShouldMatch: string | undefined;
  readonly zeroTerms: 'none' | 'all';
}

/** A field's name, or a pattern with `*` for several. */
export interface FieldPattern {
  readonly pattern: string;
  readonly boost: number;
}

/** The texts that are analysed, of a query and of the queries within it. */
export function analysedTexts(query: DslQuery): string[] {
  switch (query.type) {
    case 'match':
    case 'multi-match':
      return [query.text];
    case 'bool':
      return [query.must, query.should, query.filter, query.mustNot].flat().flatMap(analysedTexts);
    case 'dis-max':
      return query.queries.flatMap(analysedTexts);
    case 'constant-score':
      return analysedTexts(query.filter);
    case 'knn':
      return query.filter.flatMap(analysedTexts);
    default:
      return [];
  }
}

/** Whether a name fits a pattern, in which `*` stands for any characters. */
export function fitsPattern(pattern: string, name: string): boolean {
  const parts = pattern.split('*');
  if (parts.length === 1) return pattern === name;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  // Takes the first place of each part, which leaves the most for the parts after it.
  let at = first.length;
  const end = name.length - last.length;
  return parts.slice(1, -1).every((part) => {
    const found = name.indexOf(part, at);
    at = found + part.length;
    return found !== -1 && at <= end;
  });
}
