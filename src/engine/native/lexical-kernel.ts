import type {
  Bm25Parameters,
  LexicalFileCounts,
  LexicalFunctions,
  NativeAnalyser,
  NativeExplanation,
  NativeLexicalFacts,
  NativeLexicalField,
  NativeLexicalFieldsResult,
  NativeLexicalIndex,
  NativeLexicalQuery,
  NativeLexicalResult,
  NativeLexicalSpec,
  NativeLexicalWriter,
} from './lexical-functions.ts';
import { type NativeCalls, translate } from './native-calls.ts';

/** The lexical half of the native engine: inverted indexes and BM25. Its errors are `TrawlError`s. */
export class LexicalKernel {
  readonly #addon: LexicalFunctions;
  readonly #calls: NativeCalls;

  constructor(addon: LexicalFunctions, calls: NativeCalls) {
    this.#addon = addon;
    this.#calls = calls;
  }

  /** The terms of a text in order, repeated ones included. */
  analyse(analyser: NativeAnalyser, text: string): string[] {
    return this.#addon.analyse(analyser, text);
  }

  /** Maps the files. @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN naming the file. */
  open(spec: NativeLexicalSpec): NativeLexicalIndex {
    return translate(() => this.#addon.openLexical(spec));
  }

  facts(index: NativeLexicalIndex): NativeLexicalFacts {
    return this.#addon.lexicalFacts(index);
  }

  /** Running searches keep the index until they end. */
  close(index: NativeLexicalIndex): void {
    this.#addon.closeLexical(index);
  }

  /** `filter`: bits of the rows that may be found, as in RowBitmap; deleted rows are not found in any case. */
  search(
    index: NativeLexicalIndex,
    request: {
      queries: readonly string[];
      k: number;
      parameters: Bm25Parameters;
      filter: Uint8Array | undefined;
    },
    signal: AbortSignal | undefined,
  ): Promise<NativeLexicalResult> {
    const { queries, k, parameters, filter } = request;
    return this.#calls.run(signal, (id) => this.#addon.searchLexical(id, index, queries, k, parameters, filter));
  }

  /** Searches query trees over several fields of the same rows. The first field says which rows are deleted. */
  searchFields(
    fields: readonly NativeLexicalField[],
    request: {
      queries: readonly NativeLexicalQuery[];
      k: number;
      parameters: Bm25Parameters;
      filter: Uint8Array | undefined;
      count: number | undefined;
      minScore: number | undefined;
    },
    signal: AbortSignal | undefined,
  ): Promise<NativeLexicalFieldsResult> {
    const { queries, k, parameters, filter, count, minScore } = request;
    return this.#calls.run(signal, (id) =>
      this.#addon.searchLexicalFields(id, fields, queries, k, parameters, filter, count, minScore),
    );
  }

  /** For each row the terms of the query that it has, in the order of their first appearance. Stops after `maxTerms` + 1 terms. */
  explain(
    index: NativeLexicalIndex,
    request: { query: string; rows: Float64Array; parameters: Bm25Parameters; weight: number; maxTerms: number },
    signal: AbortSignal | undefined,
  ): Promise<NativeExplanation> {
    const { query, rows, parameters, weight, maxTerms } = request;
    return this.#calls.run(signal, (id) =>
      this.#addon.explainLexical(id, index, query, rows, parameters, weight, maxTerms),
    );
  }

  /** @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE. */
  create(path: string, analyser: NativeAnalyser): NativeLexicalWriter {
    return translate(() => this.#addon.createLexical(path, analyser));
  }

  /**
   * Appends rows. One call at a time per writer. `texts`: UTF-8, one after another; `ends[i]`: the byte after text i.
   * Resolves to the rows appended in total.
   */
  append(writer: NativeLexicalWriter, texts: Uint8Array, ends: Float64Array, signal?: AbortSignal): Promise<number> {
    return this.#calls.run(signal, (id) => this.#addon.appendLexical(id, writer, texts, ends));
  }

  /** Writes the file and makes it durable. */
  finish(writer: NativeLexicalWriter, signal?: AbortSignal): Promise<LexicalFileCounts> {
    return this.#calls.run(signal, (id) => this.#addon.finishLexical(id, writer));
  }

  /** Frees the writer and removes its temporary files. */
  closeWriter(writer: NativeLexicalWriter): void {
    this.#addon.closeLexicalWriter(writer);
  }

  /** Reads the whole file. Resolves to the first problem in words, or to null. */
  async verify(path: string, signal?: AbortSignal): Promise<string | null> {
    const found = await this.#calls.run(signal, (id) => this.#addon.verifyLexical(id, path));
    return found === '' ? null : found;
  }
}
