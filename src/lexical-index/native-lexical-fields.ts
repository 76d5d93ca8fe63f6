import { cancelled } from '../abort.ts';
import { TrawlError } from '../errors.ts';
import type { LexicalKernel } from '../native/lexical-kernel.ts';
import { RunningCalls } from '../running-calls.ts';
import { DEFAULT_BM25 } from './bm25.ts';
import { checkLexicalRequest, checkQueries } from './lexical-checks.ts';
import { type LexicalFields, type LexicalFieldsRequest, mappedBytesOf } from './lexical-fields.ts';
import type { EngineSource, LexicalResult } from './lexical-index.ts';
import type { LexicalField } from './lexical-settings.ts';
import { MappedLexicalIndex } from './native-lexical-index.ts';

/** Query trees with the native engine: windows of rows, with bounds that skip most postings. */
export class MappedLexicalFields implements LexicalFields {
  readonly rows: number;
  readonly indexes: ReadonlyMap<LexicalField, MappedLexicalIndex>;
  readonly mappedBytes: number;
  readonly #kernel: LexicalKernel;
  readonly #calls = new RunningCalls('The index is closed.');

  private constructor(indexes: ReadonlyMap<LexicalField, MappedLexicalIndex>, kernel: LexicalKernel) {
    this.rows = [...indexes.values()][0]?.rows ?? 0;
    this.indexes = indexes;
    this.mappedBytes = mappedBytesOf(indexes);
    this.#kernel = kernel;
  }

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  static open(sources: ReadonlyMap<LexicalField, EngineSource>, kernel: LexicalKernel): MappedLexicalFields {
    const indexes = new Map<LexicalField, MappedLexicalIndex>();
    try {
      for (const [field, source] of sources) indexes.set(field, MappedLexicalIndex.open(source, kernel));
    } catch (error) {
      for (const index of indexes.values()) void index.close();
      throw error;
    }
    return new MappedLexicalFields(indexes, kernel);
  }

  search(request: LexicalFieldsRequest): Promise<LexicalResult> {
    return this.#calls.run(() => this.#search(request));
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      await Promise.all([...this.indexes.values()].map((index) => index.close()));
    });
  }

  async #search(request: LexicalFieldsRequest): Promise<LexicalResult> {
    const { queries, k, parameters = DEFAULT_BM25, filter, signal } = request;
    checkLexicalRequest(request, parameters, this.rows);
    checkQueries(queries, new Set(this.indexes.keys()));
    const fields = [...this.indexes].map(([name, { handle }]) => ({ name, index: handle }));
    try {
      const found = await this.#kernel.searchFields(fields, { queries, k, parameters, filter: filter?.bytes }, signal);
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

function isRefusal(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof TypeError) && 'code' in error && error.code === 'BAD_ARGUMENT';
}
