import { type LexicalQuery, type MinimumRule, minimumOf } from '../../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import type { RowBitmap } from '../../../engine/row-bitmap.ts';
import type { Retriever } from '../../../search/retriever.ts';
import { type ElasticsearchError, illegalArgument, queryFailure } from '../elasticsearch-error.ts';
import {
  type DslKnn,
  type DslQuery,
  type DslRange,
  type DslValue,
  type FieldPattern,
  fitsPattern,
  type TextSearch,
} from './dsl-query.ts';
import { nearestRows, scoredRowsQuery } from './knn-rows.ts';
import { parseMinimum } from './minimum-should-match.ts';
import { queriedField } from './queried-field.ts';
import { RowSets, type RowSetsOptions } from './row-sets.ts';

export interface QueriedIndex extends RowSetsOptions {
  readonly retriever: Pick<Retriever, 'info' | 'nearest' | 'select'>;
  /** Hits of the search, which are the nearest passages of a knn without `k`. */
  readonly size: number;
}

/**
 * The query as the engine searches it. A field that the index does not have matches nothing, as in Elasticsearch.
 *
 * @throws ElasticsearchError for a query that this index cannot answer.
 */
export function lexicalTree(query: DslQuery, index: QueriedIndex): Promise<LexicalQuery> {
  return new TreeMaker(index).make(query);
}

/** The rows that match all of the queries, as a knn needs them; undefined without queries: all rows. */
export function matchingRows(queries: readonly DslQuery[], index: QueriedIndex): Promise<RowBitmap | undefined> {
  return new TreeMaker(index).rowsOf(queries);
}

const NOTHING: LexicalQuery = { type: 'match-none' };

class TreeMaker {
  readonly #index: QueriedIndex;
  readonly #info: Retriever['info'];
  readonly #fields: readonly LexicalField[];
  readonly #sets: RowSets;

  constructor(index: QueriedIndex) {
    this.#index = index;
    this.#sets = new RowSets(index);
    this.#info = index.retriever.info;
    this.#fields = this.#info.bm25?.fields ?? [];
  }

  async make(query: DslQuery): Promise<LexicalQuery> {
    const { boost } = query;
    switch (query.type) {
      case 'match':
        return this.#match(query.field, query, boost);
      case 'multi-match':
        return this.#multiMatch(query, boost);
      case 'term':
        return this.#term(query.field, query.term, boost);
      case 'terms':
        return this.#terms(query.field, query.terms, boost);
      case 'range':
        return this.#range(query, boost);
      case 'knn':
        return this.#knn(query, boost);
      case 'ids':
        return this.#sets.ids(query.ids, boost);
      case 'exists':
        return this.#exists(query.field, boost);
      case 'bool':
        return this.#bool(query, boost);
      case 'dis-max':
        this.#checkTieBreaker(query.tieBreaker);
        return { type: 'dis-max', queries: await this.#all(query.queries), tieBreaker: query.tieBreaker, boost };
      case 'constant-score':
        return { type: 'constant-score', query: await this.make(query.filter), boost };
      case 'match-all':
        return { type: 'match-all', boost };
      case 'match-none':
        return NOTHING;
      default:
        throw new TypeError(`unknown query: ${query satisfies never}`);
    }
  }

  async #all(queries: readonly DslQuery[]): Promise<LexicalQuery[]> {
    const made: LexicalQuery[] = [];
    for (const query of queries) made.push(await this.make(query));
    return made;
  }

  async #bool(query: Extract<DslQuery, { type: 'bool' }>, boost: number): Promise<LexicalQuery> {
    const { must, should, filter, mustNot, minimumShouldMatch, adjustPureNegative } = query;
    const required = must.length + filter.length;
    if (required + should.length + mustNot.length === 0) return { type: 'match-all', boost };
    const filters = await this.#all(filter);
    // A bool that only excludes finds all other passages, whatever its minimum is.
    const isNegative = adjustPureNegative && required + should.length === 0;
    if (isNegative) filters.push({ type: 'match-all' });
    return {
      type: 'bool',
      must: await this.#all(must),
      should: await this.#all(should),
      filter: filters,
      mustNot: await this.#all(mustNot),
      minimumShouldMatch: isNegative ? 0 : minimumOf(this.#minimum(minimumShouldMatch) ?? 0, should.length),
      boost,
    };
  }

  async #multiMatch(query: Extract<DslQuery, { type: 'multi-match' }>, boost: number): Promise<LexicalQuery> {
    const { fields, tieBreaker } = query;
    this.#checkTieBreaker(tieBreaker);
    const boosts = new Map<string, number>();
    for (const { pattern, boost: own } of fields) {
      for (const name of this.#namesOf(pattern)) boosts.set(name, Math.fround((boosts.get(name) ?? 1) * own));
    }
    const queries: LexicalQuery[] = [];
    for (const [name, own] of boosts) queries.push(await this.#match(name, query, own));
    return { type: 'dis-max', queries, tieBreaker, boost };
  }

  /** A column's values are not analysed, so the whole text is one term. */
  #match(name: string, search: TextSearch, boost: number): Promise<LexicalQuery> | LexicalQuery {
    const field = queriedField(name, this.#info);
    return field?.kind === 'text'
      ? this.#matchText(field.field, search, boost)
      : this.#term(name, { text: search.text, isNumber: false }, boost);
  }

  #matchText(
    field: LexicalField,
    { text, operator, minimumShouldMatch, zeroTerms }: TextSearch,
    boost: number,
  ): LexicalQuery {
    return {
      type: 'match',
      field,
      text,
      operator,
      minimumShouldMatch: this.#minimum(minimumShouldMatch),
      withoutTerms: zeroTerms,
      boost,
    };
  }

  async #term(name: string, term: DslValue, boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    switch (field?.kind) {
      case 'text':
        return { type: 'term', field: field.field, term: term.text, boost };
      case 'id':
        return this.#sets.ids([term.text], boost);
      case 'column':
        return this.#sets.term(field.column, term, boost);
      case 'vector':
        throw this.#failure(`Field [${name}] of type [dense_vector] doesn't support term queries`);
      default:
        return NOTHING;
    }
  }

  async #terms(name: string, terms: readonly DslValue[], boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    if (field?.kind === 'id') {
      return this.#sets.ids(
        terms.map(({ text }) => text),
        boost,
      );
    }
    if (field?.kind === 'column') return this.#sets.terms(field.column, terms, boost);
    const should: LexicalQuery[] = [];
    for (const term of terms) should.push(await this.#term(name, term, 1));
    return { type: 'constant-score', query: { type: 'bool', should }, boost };
  }

  async #range({ field: name, ...query }: DslRange, boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    if (field === undefined) return NOTHING;
    if (field.kind === 'column') return this.#sets.range(field.column, query, boost);
    if (field.kind === 'text')
      throw illegalArgument(`[range] is not supported by this server for the text field [${name}]`);
    throw this.#failure(`Field [${name}] does not support range queries`);
  }

  async #knn(knn: DslKnn, boost: number): Promise<LexicalQuery> {
    const { retriever, size, signal } = this.#index;
    const rows = await this.rowsOf(knn.filter);
    const found = await nearestRows(retriever, { knn, k: Math.max(1, knn.k ?? size), rows, signal });
    if (found.length === 0) return NOTHING;
    this.#sets.count();
    return scoredRowsQuery(found, this.#info.rows, { boost, among: rows });
  }

  /** The rows that match all of the queries. */
  async rowsOf(queries: readonly DslQuery[]): Promise<RowBitmap | undefined> {
    if (queries.length === 0) return undefined;
    const { retriever, signal } = this.#index;
    return retriever.select({ query: { type: 'bool', filter: await this.#all(queries) }, signal });
  }

  async #exists(name: string, boost: number): Promise<LexicalQuery> {
    const field = queriedField(name, this.#info);
    const all: LexicalQuery = { type: 'constant-score', query: { type: 'match-all' }, boost };
    if (field?.kind === 'column') return this.#sets.exists(field.column, boost);
    // A title may be absent. Where it is a column, too, the column knows.
    if (field?.kind === 'text' && field.field === 'title') {
      const isColumn = this.#info.columns.some((column) => column.name === name);
      if (isColumn) return this.#sets.exists({ name }, boost);
      throw illegalArgument(
        '[exists] needs [title] as a column: trawl optimize INDEX --column title:string. Every passage has [text].',
      );
    }
    return field !== undefined || name === '_index' ? all : NOTHING;
  }

  /** The fields that a pattern names: among those with words, unless it is a whole name. */
  #namesOf(pattern: FieldPattern['pattern']): readonly string[] {
    if (pattern.includes('*')) return this.#fields.filter((field) => fitsPattern(pattern, field));
    return queriedField(pattern, this.#info) === undefined ? [] : [pattern];
  }

  #minimum(text: string | undefined): readonly MinimumRule[] | undefined {
    if (text === undefined) return undefined;
    const rules = parseMinimum(text);
    if (rules !== null) return rules;
    throw this.#failure(`For input string: "${text.slice(0, 100)}"`);
  }

  #checkTieBreaker(tieBreaker: number): void {
    if (!(tieBreaker >= 0 && tieBreaker <= 1)) throw this.#failure('tieBreakerMultiplier must be in [0, 1]');
  }

  #failure(why: string): ElasticsearchError {
    return queryFailure(this.#info.index, why);
  }
}
