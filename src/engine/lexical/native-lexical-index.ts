import { cancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Kernel } from '../native/kernel.ts';
import type { NativeLexicalIndex } from '../native/lexical-functions.ts';
import { DEFAULT_BM25, type FieldCounts } from './bm25.ts';
import { checkedExplainRequest, checkLexicalRequest } from './lexical-checks.ts';
import type {
  EngineSource,
  ExplainRequest,
  LexicalIndex,
  LexicalRequest,
  LexicalResult,
  TermScore,
} from './lexical-index.ts';
import { type AnalyserName, engineAnalyser } from './lexical-settings.ts';

/** BM25 search with the native engine: MaxScore over compressed blocks of postings in mapped files. */
export class MappedLexicalIndex implements LexicalIndex {
  readonly rows: number;
  readonly analyser: AnalyserName;
  readonly counts: FieldCounts;
  readonly mappedBytes: number;
  /** For searches over several fields. */
  readonly handle: NativeLexicalIndex;
  readonly #kernel: Kernel;
  readonly #calls = new RunningCalls('The index is closed.');

  private constructor(analyser: AnalyserName, kernel: Kernel, index: NativeLexicalIndex) {
    const { rows, documents, tokens, mappedBytes } = kernel.lexicalFacts(index);
    this.rows = rows;
    this.analyser = analyser;
    this.counts = { documents, tokens };
    this.mappedBytes = mappedBytes;
    this.#kernel = kernel;
    this.handle = index;
  }

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  static async open(
    { analyser, shards, deleted, liveRows }: EngineSource,
    kernel: Kernel,
  ): Promise<MappedLexicalIndex> {
    const index = await kernel.openLexical({
      shards: shards.map(({ path }) => path),
      deleted,
      liveRows: liveRows?.bytes,
    });
    const facts = kernel.lexicalFacts(index);
    const rows = shards.reduce((sum, shard) => sum + shard.rows, 0);
    if (facts.rows !== rows) {
      kernel.closeLexical(index);
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${shards[0]?.path ?? 'the index'} and the files of the other shards have ${facts.rows} rows, but the manifest says ${rows}. ` +
          'Build them again with trawl optimize --bm25.',
      );
    }
    if (facts.analyser !== engineAnalyser(analyser)) {
      kernel.closeLexical(index);
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${shards[0]?.path ?? 'the index'}: the file was built with the analyser ${facts.analyser}, but the manifest says ${analyser}. ` +
          'Build it again with trawl optimize --bm25.',
      );
    }
    return new MappedLexicalIndex(analyser, kernel, index);
  }

  search(request: LexicalRequest): Promise<LexicalResult> {
    return this.#calls.run(() => this.#search(request));
  }

  explain(request: ExplainRequest): Promise<TermScore[][]> {
    return this.#calls.run(() => this.#explain(request));
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#kernel.closeLexical(this.handle));
  }

  async #explain(request: ExplainRequest): Promise<TermScore[][]> {
    const { signal } = request;
    const { rows, ...checked } = checkedExplainRequest(request, this.rows);
    const found = await this.#kernel.explainLexical(this.handle, { ...checked, rows: Float64Array.from(rows) }, signal);
    if (signal?.aborted === true) throw cancelled();
    let at = 0;
    return Array.from(found.counts, (count) =>
      Array.from({ length: count }, () => {
        const place = found.terms[at]!;
        return {
          term: found.names[place]!,
          boost: found.boosts[place]!,
          documentFrequency: found.documentFrequencies[place]!,
          score: found.scores[at++]!,
        };
      }),
    );
  }

  async #search(request: LexicalRequest): Promise<LexicalResult> {
    const { queries, k, parameters = DEFAULT_BM25, filter, signal } = request;
    checkLexicalRequest(request, parameters, this.rows);
    const found = await this.#kernel.searchLexical(
      this.handle,
      { queries, k, parameters, filter: filter?.bytes },
      signal,
    );
    // The engine may finish before it sees the abort. The caller gets CANCELLED all the same.
    if (signal?.aborted === true) throw cancelled();
    return found;
  }
}
