import { TrawlError } from '../base/errors.ts';
import { countCharacters } from '../encoder/text-encoder.ts';
import type { Hit } from './calls/query-outcome.ts';
import { type CallOptions, inputOf, type RetrieveQuery } from './calls/retrieve-call.ts';
import { hybridBytes } from './hybrid/hybrid-search.ts';
import type { Retriever } from './retriever.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import type { RetrieverStatistics, WaitingStatistics } from './retriever-statistics.ts';
import type { SearchMode } from './search-mode.ts';

export const DEFAULT_MAX_WAITING_BYTES = 512 * 1024 * 1024;

/** Estimated bytes of a waiting query, without its text and vector. */
const QUERY_BYTES = 512;
/** Bytes of a row number and a score. */
const HIT_BYTES = 16;
/** Assumed bytes of a passage before the first answer. */
const FIRST_PASSAGE_BYTES = 2_000;
/** Weight of the newest answer in the mean size of a passage. */
const WEIGHT_OF_NEWEST = 0.1;

/** What a call needs while it waits. */
interface Demand {
  /** Bytes of its queries, vectors and expected answer. */
  readonly bytes: number;
  /** Expected time in the queues that it joins, in milliseconds. Absent: it joins none. */
  readonly waitMs?: () => number;
}

/** The calls that may be refused: all but explaining hits, which continues an accepted request. */
export type AdmittedCalls = {
  readonly [Name in Exclude<keyof Retriever, 'info' | 'explain'>]: Parameters<Retriever[Name]>[0];
};

type Loads = Pick<RetrieverStatistics, 'encoder' | 'search' | 'rerank'>;

/**
 * Decides which calls of an index may wait, and counts what the waiting ones hold. It refuses a call while the bytes of the others exceed a
 * limit: the call that crosses the limit is accepted, otherwise a call larger than the limit could never be answered. And it refuses a call
 * that would probably wait longer than its request allows.
 */
export class Admission {
  readonly #info: RetrieverInfo;
  readonly #maxBytes: number;
  readonly #loads: () => Loads;
  #passageBytes = FIRST_PASSAGE_BYTES;
  #calls = 0;
  #bytes = 0;
  #refused = 0;

  /** @param loads the queues of the index. */
  constructor(info: RetrieverInfo, maxBytes: number, loads: () => Loads) {
    this.#info = info;
    this.#maxBytes = maxBytes;
    this.#loads = loads;
  }

  get load(): WaitingStatistics {
    return { calls: this.#calls, bytes: this.#bytes, maxBytes: this.#maxBytes, refused: this.#refused };
  }

  /**
   * Runs a call if it is admitted, and counts its bytes until it ends.
   *
   * @param isExempt whether the call is admitted in any case; asked only before a refusal.
   * @throws TrawlError OVERLOADED, or the error of `work`.
   */
  async run<Name extends keyof AdmittedCalls, Result>(
    name: Name,
    call: AdmittedCalls[Name],
    work: () => Promise<Result>,
    isExempt: () => boolean = () => false,
  ): Promise<Result> {
    const { bytes, waitMs } = this.#demands[name](call);
    const refusal = this.#refusalOf(call, waitMs);
    if (refusal !== undefined && !isExempt()) {
      this.#refused++;
      throw refusal;
    }
    this.#calls++;
    this.#bytes += bytes;
    try {
      return await work();
    } finally {
      this.#calls--;
      this.#bytes -= bytes;
    }
  }

  /** Learns the size of passages from the hits of an answer. */
  observe(hits: readonly Hit[]): void {
    if (hits.length === 0) return;
    const mean = hits.reduce((sum, { document }) => sum + 2 * document.length, 0) / hits.length;
    this.#passageBytes = Math.round(this.#passageBytes + (mean - this.#passageBytes) * WEIGHT_OF_NEWEST);
  }

  readonly #demands: { readonly [Name in keyof AdmittedCalls]: (call: AdmittedCalls[Name]) => Demand } = {
    retrieve: (call) => {
      const { queries, k, rerank, mode = this.#info.modes[0] } = call;
      const hits = queries.length * Math.min(Math.max(k, rerank?.depth ?? 0), this.#info.rows);
      return {
        bytes: this.#queriesBytes(queries) + hits * this.#passageBytes + hybridBytes(call),
        waitMs: () => this.#searchMs(mode) + (rerank === undefined ? 0 : this.#loads().rerank.expectedWaitMs),
      };
    },
    searchTree: ({ size }) => ({ bytes: QUERY_BYTES + Math.min(size, this.#info.rows) * this.#passageBytes }),
    // One passage per key: most keys have at most one, and the limit would be a poor estimate.
    find: ({ keys }) => ({ bytes: charactersBytes(keys) + keys.length * this.#passageBytes }),
    select: () => ({ bytes: this.#info.rows / 8 }),
    score: ({ queries, maxRank, mode }) => {
      const rows = queries.reduce((sum, query) => sum + query.rows.length, 0);
      const scores = queries.length * (rows + maxRank) * HIT_BYTES;
      return {
        bytes: this.#queriesBytes(queries.map(({ query }) => query)) + scores,
        waitMs: () => this.#searchMs(mode),
      };
    },
    nearest: ({ k }) => ({
      bytes: QUERY_BYTES + 4 * this.#info.dimension + Math.min(k, this.#info.rows) * HIT_BYTES,
      waitMs: () => this.#loads().search.expectedWaitMs,
    }),
    embed: ({ inputs }) => ({ bytes: this.#queriesBytes(inputs), waitMs: () => this.#loads().encoder.expectedWaitMs }),
    rerank: ({ lists }) => ({
      bytes: lists.reduce((sum, { query, passages }) => sum + charactersBytes([query, ...passages]), 0),
      waitMs: () => this.#loads().rerank.expectedWaitMs,
    }),
    cut: ({ texts }) => ({ bytes: charactersBytes(texts) }),
  };

  /** A search by vectors waits for the encoder and then for the engine; a BM25 search has no queue. */
  #searchMs(mode: SearchMode | undefined): number {
    const { encoder, search } = this.#loads();
    return mode === 'bm25' ? 0 : encoder.expectedWaitMs + search.expectedWaitMs;
  }

  #queriesBytes(queries: readonly RetrieveQuery[]): number {
    const each = QUERY_BYTES + 4 * this.#info.dimension;
    return queries.reduce((sum, query) => sum + each + 2 * countCharacters(inputOf(query)), 0);
  }

  #refusalOf({ patience }: CallOptions, expectedWait: (() => number) | undefined): TrawlError | undefined {
    if (this.#bytes >= this.#maxBytes) {
      return new TrawlError(
        'OVERLOADED',
        `${this.#calls} waiting calls hold ${this.#bytes} bytes of queries and expected answers; the limit is ${this.#maxBytes}. Try again later.`,
        { details: { calls: this.#calls, bytes: this.#bytes } },
      );
    }
    if (expectedWait === undefined || patience === undefined) return undefined;
    const [expectedMs, shedAfterMs] = [Math.round(expectedWait()), patience.maxWaitMs];
    if (patience.bears(expectedMs, this)) return undefined;
    return new TrawlError(
      'OVERLOADED',
      `The request would wait about ${expectedMs} ms; the limit is ${shedAfterMs} ms. Try again later.`,
      { details: { expectedMs, shedAfterMs, retryAfterS: Math.ceil((expectedMs - shedAfterMs) / 1000) } },
    );
  }
}

/** Bytes of texts, at two per character. */
function charactersBytes(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + 2 * length, 0);
}
