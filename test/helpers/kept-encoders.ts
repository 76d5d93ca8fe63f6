import { after } from 'node:test';
import type { EncoderPool, EncoderPoolOptions } from '../../src/encoder/pool/encoder-pool.ts';
import { EncoderPools, type PoolLease } from '../../src/encoder/pool/encoder-pools.ts';

/**
 * Encoder pools that stay open until all tests of the file have ended: most tests take less time than loading a model. Call it
 * outside of tests.
 */
export function keptEncoders(): EncoderPools {
  const pools = new KeptPools();
  after(() => pools.end());
  return pools;
}

class KeptPools extends EncoderPools {
  readonly #kept = new Map<EncoderPool, PoolLease>();

  override async lease(options: EncoderPoolOptions): Promise<PoolLease> {
    // Each thread loads the model.
    const small = options.cudaDevices == null ? { ...options, workers: 1 } : options;
    const lease = await super.lease(small);
    if (this.#kept.has(lease.pool)) return lease;
    this.#kept.set(lease.pool, lease);
    return super.lease(small);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#kept.values()].map((lease) => lease.close()));
  }
}
