import type { RowBitmap } from '../row-bitmap.ts';
import type { FieldRanking } from './bm25.ts';
import type { LexicalField } from './lexical-settings.ts';

/**
 * A query tree over the fields of an index. Each node scores as the query of the same name in Elasticsearch and Lucene. `boost`
 * (default 1) multiplies the weights of all terms and constants below a node.
 */
export type LexicalQuery =
  | TermQuery
  | MatchQuery
  | BoolQuery
  | DisMaxQuery
  | ConstantScoreQuery
  | RowsQuery
  /** All rows; the score is the boost. */
  | (Boosted & { readonly type: 'match-all' })
  | (Boosted & { readonly type: 'match-none' });

interface Boosted {
  /** A float32 of at least 0. */
  readonly boost?: number;
}

/** Rows whose field has the term. */
interface TermQuery extends Boosted {
  readonly type: 'term';
  readonly field: LexicalField;
  /** As it is in the index: it is not analysed. */
  readonly term: string;
}

/** Rows whose field has terms of a text, which the field's analyser splits. */
export interface MatchQuery extends Boosted {
  readonly type: 'match';
  readonly field: LexicalField;
  readonly text: string;
  /** Whether one of the terms is enough (`or`, the default) or all are needed. */
  readonly operator?: 'or' | 'and';
  /**
   * With `or`: how many of the terms are needed, repeated ones counted each. A negative number says how many may be absent. A
   * text of one term ignores it. Rules choose a number by the length of the text.
   */
  readonly minimumShouldMatch?: number | readonly MinimumRule[];
  /** Which rows a text without terms matches. Default: none. */
  readonly withoutTerms?: 'none' | 'all';
}

/**
 * Of a text with more than `above` terms, `count` terms must match, or `count` percent of them (rounded toward zero). Of several
 * rules in rising order, the last one whose `above` is exceeded holds; if there is none, all terms must match.
 */
export interface MinimumRule {
  readonly above: number;
  /** A negative number says how many terms, or percent of them, may be absent. */
  readonly count: number;
  readonly isPercent: boolean;
}

/** Rows that match all of `must` and `filter`, none of `mustNot`, and enough of `should`. `must` and `should` make the score. */
interface BoolQuery extends Boosted {
  readonly type: 'bool';
  readonly must?: readonly LexicalQuery[];
  readonly should?: readonly LexicalQuery[];
  readonly filter?: readonly LexicalQuery[];
  readonly mustNot?: readonly LexicalQuery[];
  /** How many clauses of `should` must match. Default: 0. Without `must` and `filter`, at least one must match. */
  readonly minimumShouldMatch?: number;
}

/** Rows that match any of the queries; the score is the best one plus `tieBreaker` times the sum of the others. */
interface DisMaxQuery extends Boosted {
  readonly type: 'dis-max';
  readonly queries: readonly LexicalQuery[];
  /** From 0 to 1. Default: 0. */
  readonly tieBreaker?: number;
}

/** Rows that match the query; the score is the boost. */
interface ConstantScoreQuery extends Boosted {
  readonly type: 'constant-score';
  readonly query: LexicalQuery;
}

/** The rows of a set; the score is the boost, times the row's own score if there are scores. */
export interface RowsQuery extends Boosted {
  readonly type: 'rows';
  /** Covers the rows of the index. Must not change until the search has ended, nor may `scores`. */
  readonly rows: RowBitmap;
  /** A finite score of at least 0 for each row of the set, in the order of the rows. Default: 1 each. */
  readonly scores?: Float32Array;
  /** With scores: the rows among which the set was found, as by the filter of a knn; no search needs them. Default: all. */
  readonly among?: RowBitmap;
}

/** The terms of `terms` that must match, at least 0; may be more than there are. */
export function minimumOf(rules: number | readonly MinimumRule[], terms: number): number {
  const least = (wanted: number, mayBeAbsent: boolean): number => Math.max(0, mayBeAbsent ? terms + wanted : wanted);
  if (typeof rules === 'number') return least(rules, rules < 0);
  let minimum = terms;
  for (const { above, count, isPercent } of rules) {
    if (terms <= above) break;
    // In float32, as in Elasticsearch.
    const part = Math.fround(Math.fround(terms * count) * Math.fround(1 / 100));
    minimum = isPercent ? least(Math.trunc(part), part < 0) : least(count, count < 0);
  }
  return minimum;
}

/** The most nodes on the way from the root to a leaf, both included, and the most nodes of a tree. */
export const MAX_QUERY_DEPTH = 32;
export const MAX_QUERY_NODES = 2 ** 18;

/** Elasticsearch's `multi_match` of type `best_fields`. A field of weight 0 is not searched; other fields have weight 1. */
export function bestFields(
  text: string,
  fields: readonly LexicalField[],
  { weights = {}, tieBreaker = 0 }: FieldRanking = {},
): LexicalQuery {
  const queries = fields.flatMap((field): LexicalQuery[] => {
    const boost = weights[field] ?? 1;
    return boost === 0 ? [] : [{ type: 'match', field, text, boost }];
  });
  return { type: 'dis-max', queries, tieBreaker };
}

/** The queries directly below a node. */
export function childrenOf(query: LexicalQuery): readonly LexicalQuery[] {
  switch (query.type) {
    case 'bool':
      return [query.must, query.should, query.filter, query.mustNot].flatMap((clauses) => clauses ?? []);
    case 'dis-max':
      return query.queries;
    case 'constant-score':
      return [query.query];
    default:
      return [];
  }
}

/** The texts of the match queries, in the order of `mapLeaves`. */
export function* textsOf(query: LexicalQuery): Generator<string> {
  if (query.type === 'match') yield query.text;
  for (const child of childrenOf(query)) yield* textsOf(child);
}

/** The query with each leaf (a query with none below it) replaced, in the order of the leaves. */
export function mapLeaves(query: LexicalQuery, replace: (leaf: LexicalQuery) => LexicalQuery): LexicalQuery {
  const map = (each: LexicalQuery): LexicalQuery => mapLeaves(each, replace);
  switch (query.type) {
    case 'bool': {
      const { must, should, filter, mustNot } = query;
      return {
        ...query,
        must: must?.map(map),
        should: should?.map(map),
        filter: filter?.map(map),
        mustNot: mustNot?.map(map),
      };
    }
    case 'dis-max':
      return { ...query, queries: query.queries.map(map) };
    case 'constant-score':
      return { ...query, query: map(query.query) };
    default:
      return replace(query);
  }
}
