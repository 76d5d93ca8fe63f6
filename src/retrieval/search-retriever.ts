import { throwIfCancelled } from '../abort.ts';
import { composeText, type EncodeOutcome, type EncoderInput, type TextEncoder } from '../embedding/text-encoder.ts';
import { bug, TrawlError } from '../errors.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import type { RowBitmap } from '../vector-index/row-bitmap.ts';
import type { SearchResult, VectorIndex } from '../vector-index/vector-index.ts';
import type {
  EmbedCall,
  EmbedResult,
  FindCall,
  FindResult,
  Hit,
  QueryOutcome,
  RetrieveCall,
  RetrieveResult,
  Retriever,
  RetrieverInfo,
  RetrieverStatistics,
} from './retriever.ts';
import { NO_STATISTICS } from './statistics-sum.ts';
import { Stopwatch } from './timings.ts';

/** Encode, search, fetch: the one place that sees all three, through their contracts alone. */
export class SearchRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #encoder: TextEncoder;
  readonly #index: VectorIndex;
  readonly #passages: PassageStore;
  readonly #alive: RowBitmap | undefined;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** `alive`: the rows that have not been removed, where some have. */
  constructor(
    info: RetrieverInfo,
    encoder: TextEncoder,
    index: VectorIndex,
    passages: PassageStore,
    alive?: RowBitmap,
  ) {
    this.info = info;
    this.#encoder = encoder;
    this.#index = index;
    this.#passages = passages;
    this.#alive = alive;
  }

  retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    return this.#track(() => this.#retrieve(call));
  }

  hasAnswers({ queries }: RetrieveCall): boolean {
    return queries.length === 0;
  }

  embed(call: EmbedCall): Promise<EmbedResult> {
    return this.#track(() => this.#embed(call));
  }

  find(call: FindCall): Promise<FindResult> {
    return this.#track(() => this.#find(call));
  }

  statistics(): RetrieverStatistics {
    return {
      ...NO_STATISTICS,
      encoder: this.#encoder.load ?? NO_STATISTICS.encoder,
      search: this.#index.load ?? NO_STATISTICS.search,
      waiting: { ...NO_STATISTICS.waiting, calls: this.#running.size },
    };
  }

  get failure(): TrawlError | undefined {
    return this.#encoder.failure ?? this.#passages.failure;
  }

  /** What runs is waited for when the retriever closes. */
  #track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) return Promise.reject(new TrawlError('NOT_READY', 'The index is being closed.'));
    const running = work();
    const settled = running.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    return running;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all(this.#running);
    await Promise.all([this.#encoder.close(), this.#index.close(), this.#passages.close()]);
  }

  async #retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, truncate, signal } = call;
    // A result has room for k hits a query: no more than there can be.
    const k = Math.min(call.k, Math.max(1, this.#index.rows));
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    if (queries.length === 0) return { outcomes: [], timings: watch.timings };
    const encoded = await watch.time('embed', () =>
      this.#encoder.encode(queries, {
        kind: 'query',
        ...(truncate === undefined ? {} : { truncate }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    watch.waited('embed', encoded.waitedMs ?? 0);
    const usable = usableQueries(encoded.vectors, encoded.outcomes, this.#index.dimension);
    const found = await watch.time('search', () =>
      this.#index.search({
        queries: usable.vectors,
        count: usable.count,
        k,
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    watch.waited('search', found.waitedMs ?? 0);
    if (!found.exact) throw bug('an exact engine did not prove its answer');
    const rows = hitRows(found, k);
    const documents = await watch.time('fetch', () => this.#passages.getMany(rows, signal));
    const texts = queries.map((query) => this.#textOf(query));
    return { outcomes: outcomes(encoded.outcomes, texts, found, k, documents), timings: watch.timings };
  }

  #textOf(query: EncoderInput): string {
    return composeText(query, this.info.model.prefixes.query, this.#encoder.separator);
  }

  async #embed({ inputs, kind, truncate, signal }: EmbedCall): Promise<EmbedResult> {
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const {
      vectors,
      outcomes,
      waitedMs = 0,
    } = await watch.time('embed', () =>
      this.#encoder.encode(inputs, {
        kind,
        ...(truncate === undefined ? {} : { truncate }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    watch.waited('embed', waitedMs);
    return { vectors, outcomes, timings: watch.timings };
  }

  async #find(call: FindCall): Promise<FindResult> {
    const { signal } = call;
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const kept = await watch.time('search', () => this.#aliveRows(call));
    const documents = await watch.time('fetch', () => this.#passages.getMany(kept.flat(), signal));
    let next = 0;
    const found = kept.map((list) => list.map((row) => ({ row, document: documents[next++]! })));
    return { found, timings: watch.timings };
  }

  #existing(key: string): number[] {
    const row = /^\d{1,15}$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY;
    return row < this.info.rows && this.#alive?.has(row) !== false ? [row] : [];
  }

  /** A key may have any number of removed rows before those that are alive: it is asked for more until there are enough. */
  async #aliveRows({ by, keys, limit, signal }: FindCall): Promise<number[][]> {
    const alive = this.#alive;
    if (by === 'row') return keys.map((key) => this.#existing(key));
    if (alive === undefined) return this.#passages.find(by, keys, limit, signal);
    const found: number[][] = keys.map(() => []);
    let open = keys.map((_, i) => i);
    for (let wanted = limit; open.length > 0; wanted *= 4) {
      const rows = await this.#passages.find(
        by,
        open.map((i) => keys[i]!),
        wanted,
        signal,
      );
      open = open.filter((i, at) => {
        found[i] = rows[at]!.filter((row) => alive.has(row)).slice(0, limit);
        return found[i].length < limit && rows[at]!.length === wanted;
      });
    }
    return found;
  }
}

/** The vectors of the texts that could be encoded, without gaps. */
function usableQueries(
  vectors: Float32Array,
  outcomes: readonly EncodeOutcome[],
  dimension: number,
): { vectors: Float32Array; count: number } {
  const usable = outcomes.flatMap((outcome, i) => (outcome.ok ? [i] : []));
  if (usable.length === outcomes.length) return { vectors, count: usable.length };
  const packed = new Float32Array(usable.length * dimension);
  for (const [at, i] of usable.entries())
    packed.set(vectors.subarray(i * dimension, (i + 1) * dimension), at * dimension);
  return { vectors: packed, count: usable.length };
}

function hitRows(found: SearchResult, k: number): Float64Array {
  const total = found.counts.reduce((sum, count) => sum + count, 0);
  const rows = new Float64Array(total);
  let at = 0;
  for (const [q, count] of found.counts.entries()) {
    rows.set(found.rows.subarray(q * k, q * k + count), at);
    at += count;
  }
  return rows;
}

function outcomes(
  encoded: readonly EncodeOutcome[],
  texts: readonly string[],
  found: SearchResult,
  k: number,
  documents: readonly string[],
): QueryOutcome[] {
  let q = 0;
  let nextDocument = 0;
  return encoded.map((outcome, i): QueryOutcome => {
    if (!outcome.ok) return outcome;
    const hits: Hit[] = [];
    for (let at = q * k; at < q * k + found.counts[q]!; at++) {
      // A negative score too small for float32 rounds to −0, which adding 0 makes 0.
      const score = Math.fround(found.scores[at]!) + 0;
      hits.push({ row: found.rows[at]!, score, document: documents[nextDocument++]! });
    }
    const certificate = { exact: true, rescored: found.certificate?.rescored[q] ?? null } as const;
    q++;
    const { tokens, truncated, cut } = outcome;
    return { ok: true, hits, tokens, truncated, text: texts[i]!, cut, certificate };
  });
}
