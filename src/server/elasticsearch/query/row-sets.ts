import type { Column } from '../../../engine/filter/column.ts';
import type { Filter } from '../../../engine/filter/filter.ts';
import { BM25_PROFILES, inverseNorms, termScore, termWeight } from '../../../engine/lexical/bm25.ts';
import type { LexicalQuery, RowsQuery } from '../../../engine/lexical/lexical-query.ts';
import type { Retriever } from '../../../search/retriever.ts';
import { type ElasticsearchError, illegalArgument, queryFailure, searchPhaseFailure } from '../elasticsearch-error.ts';
import { rangeFilter, termsFilter, type ValueReading, WrongColumnValue } from './column-filter.ts';
import type { DslRange, DslValue } from './dsl-query.ts';

/** Limit of the sets of rows of one query, in bytes: a set has a bit for each row of the index. */
const MAX_SET_BYTES = 256 * 1024 ** 2;

/** 1 / k1: the length norm of a field without lengths, whose rows have one value. */
const ONE_VALUE = inverseNorms(BM25_PROFILES.elasticsearch, { documents: 1, tokens: 1 })[1]!;

export interface RowSetsOptions extends ValueReading {
  readonly retriever: Pick<Retriever, 'info' | 'select'>;
  readonly signal: AbortSignal;
}

/** The parts of one query that are sets of rows: ids, and the values of columns. */
export class RowSets {
  readonly #options: RowSetsOptions;
  #bytes = 0;

  constructor(options: RowSetsOptions) {
    this.#options = options;
  }

  async ids(ids: readonly string[], boost: number): Promise<LexicalQuery> {
    if (ids.length === 0) return { type: 'match-none' };
    const { retriever, signal } = this.#options;
    this.count();
    return { type: 'rows', rows: await retriever.select({ ids, signal }), boost };
  }

  /** Texts, true and false are scored as words by Elasticsearch, numbers and dates are not. */
  async term(column: Column, term: DslValue, boost: number): Promise<LexicalQuery> {
    const found = await this.terms(column, [term], boost);
    if (column.type === 'number' || column.type === 'date') return found;
    const { rows: any } = await this.exists(column, 1);
    const [documentFrequency, documents] = [found.rows.count(), any.count()];
    if (documentFrequency === 0) return { type: 'match-none' };
    const weight = termWeight(BM25_PROFILES.elasticsearch, boost, { documentFrequency, documents });
    return { ...found, boost: termScore(weight, 1, ONE_VALUE) };
  }

  terms(column: Column, terms: readonly DslValue[], boost: number): Promise<RowsQuery> {
    return this.#passing(
      this.#filter((reading) => termsFilter(column, terms, reading)),
      boost,
    );
  }

  range(column: Column, range: Pick<DslRange, 'bounds' | 'format'>, boost: number): Promise<RowsQuery> {
    return this.#passing(
      this.#filter((reading) => rangeFilter(column, range, reading)),
      boost,
    );
  }

  exists({ name }: Pick<Column, 'name'>, boost: number): Promise<RowsQuery> {
    return this.#passing({ column: name, op: 'exists' }, boost);
  }

  /** Counts another set of the query. @throws ElasticsearchError if there are too many. */
  count(): void {
    this.#bytes += Math.ceil(this.#options.retriever.info.rows / 8);
    if (this.#bytes <= MAX_SET_BYTES) return;
    throw illegalArgument(
      `The query has too many sets of passages (ids, columns, knn): they would need more than ${MAX_SET_BYTES} bytes`,
    );
  }

  async #passing(filter: Filter, boost: number): Promise<RowsQuery> {
    const { retriever, signal } = this.#options;
    this.count();
    return { type: 'rows', rows: await retriever.select({ filter, signal }), boost };
  }

  #filter(read: (reading: ValueReading) => Filter): Filter {
    try {
      return read(this.#options);
    } catch (error) {
      throw error instanceof WrongColumnValue ? this.#failure(error) : error;
    }
  }

  #failure({ message, isDate }: WrongColumnValue): ElasticsearchError {
    if (isDate) return searchPhaseFailure({ type: 'parse_exception', reason: message });
    return queryFailure(this.#options.retriever.info.index, message);
  }
}
