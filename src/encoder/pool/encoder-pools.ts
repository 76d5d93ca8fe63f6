import { TrawlError } from '../../base/errors.ts';
import { fileState } from '../../base/system/file-checksum.ts';
import { EndpointClients } from '../endpoint/endpoint-client.ts';
import type { EncodeResult, EncoderLoad } from '../text-encoder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import type { TokenizeOptions } from '../tokenizer/truncation.ts';
import { PoolUser } from './encode-call.ts';
import { EncoderPool, type EncoderPoolOptions } from './encoder-pool.ts';

export class PoolLease {
  readonly pool: EncoderPool;
  readonly #release: () => Promise<void>;
  readonly #user = new PoolUser();
  readonly #running = new Set<Promise<EncodeResult>>();
  #closing: Promise<void> | undefined;

  /** @param release called once, when the lease is closed. */
  constructor(pool: EncoderPool, release: () => Promise<void>) {
    this.pool = pool;
    this.#release = release;
  }

  get load(): EncoderLoad {
    return { ...this.#user, expectedWaitMs: this.pool.expectedWaitMs };
  }

  async encode(
    inputs: readonly WorkInput[],
    options: { readonly tokenize: TokenizeOptions; readonly signal?: AbortSignal },
  ): Promise<EncodeResult> {
    if (this.#closing !== undefined) throw new TrawlError('CANCELLED', 'The encoder has been closed.');
    const result = this.pool.encode(inputs, { ...options, user: this.#user });
    this.#running.add(result);
    try {
      return await result;
    } finally {
      this.#running.delete(result);
    }
  }

  /** Rejects calls with waiting texts, waits for the others and releases the pool, which its last lease closes. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.pool.cancelWaiting(this.#user);
    await Promise.allSettled(this.#running);
    await this.#release();
  }
}

interface SharedPool {
  readonly opening: Promise<EncoderPool>;
  pool?: EncoderPool;
  users: number;
  /** Whether the files of the weights are those that the pool opened. */
  hasSameFiles(): boolean;
}

/**
 * The encoder pools of a server. Encoders of the same model share one pool, so that its workers and weights exist once, however
 * many indexes use the model. Models are the same if their checksums and the settings that decide how the workers run them are equal
 * (`poolKey`); name, prefixes, token limits and truncation belong to each encoder.
 *
 * Encoders that open at the same time share one opening, a reloaded index shares the pool of the index that it replaces, and the last
 * user closes the pool. A pool that has failed, or whose files were written to or replaced, gets no new users.
 */
export class EncoderPools {
  readonly endpoints = new EndpointClients();
  readonly #shared = new Map<string, SharedPool>();

  /** Pools that are open or opening. */
  get size(): number {
    return this.#shared.size;
  }

  /** @throws TrawlError as `EncoderPool.open`, for every encoder that waits for the same opening. */
  async lease(options: EncoderPoolOptions): Promise<PoolLease> {
    const key = poolKey(options);
    const found = this.#shared.get(key);
    const isUsable = found !== undefined && found.pool?.failure === undefined && found.hasSameFiles();
    const shared = isUsable ? found : this.#open(key, options);
    shared.users++;
    const pool = await shared.opening;
    return new PoolLease(pool, () => this.#release(key, shared, pool));
  }

  #open(key: string, options: EncoderPoolOptions): SharedPool {
    const { graphPath, externalData } = options.model;
    const files = [graphPath, ...externalData].map((path) => ({ path, state: fileState(path) }));
    const hasSameFiles = (): boolean => files.every(({ path, state }) => fileState(path) === state);
    const shared: SharedPool = { opening: EncoderPool.open(options), users: 0, hasSameFiles };
    this.#shared.set(key, shared);
    shared.opening.then(
      (pool) => (shared.pool = pool),
      () => this.#forget(key, shared),
    );
    return shared;
  }

  async #release(key: string, shared: SharedPool, pool: EncoderPool): Promise<void> {
    shared.users--;
    if (shared.users > 0) return;
    this.#forget(key, shared);
    await pool.close();
  }

  /** Keeps the entry if a new pool has replaced a failed one. */
  #forget(key: string, shared: SharedPool): void {
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
  }
}

function poolKey({ model, workerUrl, ...run }: EncoderPoolOptions): string {
  const { sha256, pooling, normalize, dimension, fullDimension, beforeTruncation } = model.identity;
  return JSON.stringify([
    [sha256, model.kind, model.graphOutput, pooling, normalize, dimension, fullDimension, beforeTruncation],
    [run.workers, run.cudaDevices, run.shareWeights, run.trialAtStart, run.batchTokens, workerUrl?.href],
  ]);
}
