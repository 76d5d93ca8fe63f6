import { TrawlError } from '../../base/errors.ts';
import type { EncodeResult, EncoderLoad } from '../text-encoder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import { type CallOptions, PoolUser } from './encode-call.ts';
import { EncoderPool, type EncoderPoolOptions } from './encoder-pool.ts';
import type { EncoderPools, PoolLease } from './encoder-pools.ts';

/** One encoder's access to a pool: its counters, its running calls and its lease. */
export class PoolAccess {
  readonly #lease: PoolLease;
  readonly #user = new PoolUser();
  readonly #running = new Set<Promise<EncodeResult>>();
  #closing: Promise<void> | undefined;

  private constructor(lease: PoolLease) {
    this.#lease = lease;
  }

  static async open(options: EncoderPoolOptions, pools?: EncoderPools): Promise<PoolAccess> {
    if (pools !== undefined) return new PoolAccess(await pools.lease(options));
    const pool = await EncoderPool.open(options);
    return new PoolAccess({ pool, release: () => pool.close() });
  }

  get pool(): EncoderPool {
    return this.#lease.pool;
  }

  get load(): EncoderLoad {
    return { ...this.#user, expectedWaitMs: this.pool.expectedWaitMs };
  }

  async encode(inputs: readonly WorkInput[], options: Omit<CallOptions, 'user'>): Promise<EncodeResult> {
    if (this.#closing !== undefined) throw new TrawlError('CANCELLED', 'The encoder has been closed.');
    const result = this.pool.encode(inputs, { ...options, user: this.#user });
    this.#running.add(result);
    try {
      return await result;
    } finally {
      this.#running.delete(result);
    }
  }

  /** Rejects calls with waiting texts, waits for the others and releases the pool. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.pool.cancelWaiting(this.#user);
    await Promise.allSettled(this.#running);
    await this.#lease.release();
  }
}
