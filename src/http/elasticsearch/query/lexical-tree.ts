import { type LexicalQuery, type MinimumRule, minimumOf } from '../../../lexical-index/lexical-query.ts';
import type { LexicalField } from '../../../lexical-index/lexical-settings.ts';
import type { Retriever } from '../../../retrieval/retriever.ts';
import { type ElasticsearchError, illegalArgument, queryFailure } from '../elasticsearch-error.ts';
import { type DslQuery, type FieldPattern, fitsPattern, type TextSearch } from './dsl-query.ts';
import { parseMinimum } from './minimum-should-match.ts';

/** Limit of the sets of rows of one query, in bytes: a set has a bit for each row of the index. */
const MAX_SET_BYTES = 256 * 1024 ** 2;

export interface QueriedIndex {
  readonly retriever: Pick<Retriever, 'info' | 'select'>;
  readonly signal: AbortSignal;
}

/**
 * The query as the engine searches it. A field that the index does not have matches nothing, as in Elasticsearch.
 *
 * @throws ElasticsearchError for a query that this index cannot answer.
 */
export function lexicalTree(query: DslQuery, index: QueriedIndex): Promise<LexicalQuery> {
  return new TreeMaker(index).make(query);
}

const NOTHING: LexicalQuery = { type: 'match-none' };

class TreeMaker {
  readonly #index: QueriedIndex;
  readonly #fields: readonly LexicalField[];
  #setBytes = 0;

  constructor(index: QueriedIndex) {
    this.#index = index;
    this.#fields = index.retriever.info.bm25?.fields ?? [];
  }

  async make(query: DslQuery): Promise<LexicalQuery> {
    const { boost } = query;
    switch (query.type) {
      case 'match':
        return this.#match(query.field, query, boost);
      case 'multi-match':
        return this.#multiMatch(query, boost);
      case 'term':
        return query.field === '_id' ? this.#ids([query.term], boost) : this.#term(query.field, query.term, boost);
      case 'terms': {
        const { field, terms } = query;
        if (field === '_id') return this.#ids(terms, boost);
        const should = terms.map((term) => this.#term(field, term, 1));
        return { type: 'constant-score', query: { type: 'bool', should }, boost };
      }
      case 'ids':
        return this.#ids(query.ids, boost);
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

  #multiMatch(query: Extract<DslQuery, { type: 'multi-match' }>, boost: number): LexicalQuery {
    const { fields, tieBreaker } = query;
    this.#checkTieBreaker(tieBreaker);
    const boosts = new Map<LexicalField, number>();
    for (const { pattern, boost: own } of fields) {
      for (const field of this.#fieldsOf(pattern)) boosts.set(field, Math.fround((boosts.get(field) ?? 1) * own));
    }
    const queries = [...boosts].map(([field, own]) => this.#match(field, query, own));
    return { type: 'dis-max', queries, tieBreaker, boost };
  }

  #match(name: string, { text, operator, minimumShouldMatch, zeroTerms }: TextSearch, boost: number): LexicalQuery {
    const field = this.#field(name);
    if (field === undefined) return NOTHING;
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

  #term(name: string, term: string, boost: number): LexicalQuery {
    const field = this.#field(name);
    return field === undefined ? NOTHING : { type: 'term', field, term, boost };
  }

  #exists(name: string, boost: number): LexicalQuery {
    this.#refuseColumn(name);
    // Every passage has an id and a text, and contents; a title may be absent.
    if (name === '_id' || name === '_index' || (this.#fields as readonly string[]).includes(name)) {
      if (name !== 'title') return { type: 'constant-score', query: { type: 'match-all' }, boost };
      throw illegalArgument('[exists] is not supported by this server for [title]');
    }
    return NOTHING;
  }

  async #ids(ids: readonly string[], boost: number): Promise<LexicalQuery> {
    if (ids.length === 0) return NOTHING;
    const { retriever, signal } = this.#index;
    this.#setBytes += Math.ceil(retriever.info.rows / 8);
    if (this.#setBytes > MAX_SET_BYTES) {
      throw illegalArgument(`The query has too many [ids]: their sets would need more than ${MAX_SET_BYTES} bytes`);
    }
    return { type: 'rows', rows: await retriever.select({ ids, signal }), boost };
  }

  /** The searchable field of this name; undefined if the index has none. */
  #field(name: string): LexicalField | undefined {
    const found = this.#fields.find((field) => field === name);
    this.#refuseColumn(name);
    const isPart = name === 'title' || name === 'text';
    if (found === undefined && isPart && this.#fields.includes('contents')) {
      throw illegalArgument(
        `The index [${this.#index.retriever.info.index}] has title and text as one field, [contents], so [${name}] cannot be ` +
          'searched alone. Make its inverted indexes again with trawl optimize INDEX --bm25 --bm25-fields title,text.',
      );
    }
    return found;
  }

  /** A column that the index has stored for filters must not look like a field that no passage has. */
  #refuseColumn(name: string): void {
    const { columns, index, bm25 } = this.#index.retriever.info;
    if (bm25?.fields.some((field) => field === name) || !columns.some((column) => column.name === name)) return;
    throw illegalArgument(
      `The column [${name}] of [${index}] cannot be searched by Elasticsearch's queries on this server. POST /v1/search has a ` +
        'filter for it, and --filter limits all searches of an address.',
    );
  }

  #fieldsOf(pattern: FieldPattern['pattern']): readonly LexicalField[] {
    if (pattern.includes('*')) return this.#fields.filter((field) => fitsPattern(pattern, field));
    return [this.#field(pattern) ?? []].flat();
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
    return queryFailure(this.#index.retriever.info.index, why);
  }
}
