import { cancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Kernel } from '../native/kernel.ts';
import type { NativeLexicalQuery } from '../native/lexical-functions.ts';
import { DEFAULT_BM25 } from './bm25.ts';
import { checkCounting, checkLexicalRequest, checkQueries } from './lexical-checks.ts';
import {
  type LexicalFields,
  type LexicalFieldsRequest,
  type LexicalFieldsResult,
  mappedBytesOf,
} from './lexical-fields.ts';
import type { EngineSource } from './lexical-index.ts';
import type { LexicalQuery } from './lexical-query.ts';
import type { LexicalField } from './lexical-settings.ts';
import { MappedLexicalIndex } from './native-lexical-index.ts';

/** Query trees with the native engine: windows of rows, with bounds that skip most postings. */
export class MappedLexicalFields implements LexicalFields {
  readonly rows: number;
  readonly indexes: ReadonlyMap<LexicalField, MappedLexicalIndex>;
  readonly mappedBytes: number;
  readonly #kernel: Kernel;
  readonly #calls = new RunningCalls('The index is closed.');

  private constructor(indexes: ReadonlyMap<LexicalField, MappedLexicalIndex>, kernel: Kernel) {
    this.rows = [...indexes.values()][0]?.rows ?? 0;
    this.indexes = indexes;
    this.mappedBytes = mappedBytesOf(indexes);
    this.#kernel = kernel;
  }

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  static async open(sources: ReadonlyMap<LexicalField, EngineSource>, kernel: Kernel): Promise<MappedLexicalFields> {
    const indexes = new Map<LexicalField, MappedLexicalIndex>();
    try {
      for (const [field, source] of sources) indexes.set(field, await MappedLexicalIndex.open(source, kernel));
    } catch (error) {
      for (const index of indexes.values()) void index.close();
      throw error;
    }
    return new MappedLexicalFields(indexes, kernel);
  }

  search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    return this.#calls.run(() => this.#search(request));
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      await Promise.all([...this.indexes.values()].map((index) => index.close()));
    });
  }

  async #search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    const { k, parameters = DEFAULT_BM25, filter, signal, count, minScore } = request;
    checkLexicalRequest(request, parameters, this.rows);
    checkCounting(request);
    checkQueries(request.queries, this);
    const queries = request.queries.map(withBytes);
    const fields = [...this.indexes].map(([name, { handle }]) => ({ name, index: handle }));
    try {
      const found = await this.#kernel.searchLexicalFields(
        fields,
        { queries, k, parameters, filter: filter?.bytes, count, minScore },
        signal,
      );
      // The engine may finish before it sees the abort. The caller gets CANCELLED all the same.
      if (signal?.aborted === true) throw cancelled();
      return found;
    } catch (error) {
      // Only the engine finds these: too many terms after analysis, or a weight beyond float32.
      if (isRefusal(error)) throw new TrawlError('INVALID_REQUEST', `${error.message}.`, { cause: error });
      throw error;
    }
  }
}

/** A query as the engine reads it: sets of rows as their bytes. */
function withBytes(query: LexicalQuery): NativeLexicalQuery {
  switch (query.type) {
    case 'rows':
      return { ...query, rows: query.rows.bytes } as NativeLexicalQuery;
    case 'bool': {
      const { must, should, filter, mustNot } = query;
      const [a, b, c, d] = [must, should, filter, mustNot].map((clauses) => clauses?.map(withBytes));
      return { ...query, must: a, should: b, filter: c, mustNot: d } as NativeLexicalQuery;
    }
    case 'dis-max':
      return { ...query, queries: query.queries.map(withBytes) } as NativeLexicalQuery;
    case 'constant-score':
      return { ...query, query: withBytes(query.query) } as NativeLexicalQuery;
    default:
      return query;
  }
}

function isRefusal(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof TypeError) && 'code' in error && error.code === 'BAD_ARGUMENT';
}
