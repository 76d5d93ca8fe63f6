import type { TrawlError } from '../base/errors.ts';
import type { FolderModelIdentity } from './identity/model-identity.ts';
import { identityOn } from './inference/device.ts';
import type { EncoderPoolOptions } from './pool/encoder-pool.ts';
import { EncoderPools, type PoolLease } from './pool/encoder-pools.ts';
import type { EncodeOptions, EncodeResult, EncoderInput, EncoderLoad, TextEncoder } from './text-encoder.ts';

/** A `TextEncoder` on its own pool or on a shared one. Prefixes and token limits belong to the encoder, not to the pool. */
export class ModelEncoder implements TextEncoder {
  readonly identity: FolderModelIdentity;
  readonly #lease: PoolLease;

  private constructor(identity: FolderModelIdentity, lease: PoolLease) {
    this.identity = identity;
    this.#lease = lease;
  }

  /** Takes a pool from `pools`; without `pools`, opens a separate one. Errors as of `EncoderPool.open`. */
  static async open(options: EncoderPoolOptions, pools = new EncoderPools()): Promise<ModelEncoder> {
    const identity = identityOn(options.cudaDevices ?? null, options.model.identity);
    return new ModelEncoder(identity, await pools.lease(options));
  }

  get dimension(): number {
    return this.#lease.pool.dimension;
  }

  get separator(): string | null {
    return this.#lease.pool.separator;
  }

  get failure(): TrawlError | undefined {
    return this.#lease.pool.failure;
  }

  get load(): EncoderLoad {
    return this.#lease.load;
  }

  async encode(
    inputs: readonly EncoderInput[],
    { inputType, truncate = 'tail', signal }: EncodeOptions,
  ): Promise<EncodeResult> {
    const { prefixes, maxTokens } = this.identity;
    const tokenize = { prefix: prefixes[inputType], maxTokens: maxTokens[inputType], truncate };
    return this.#lease.encode(inputs, { tokenize, signal });
  }

  close(): Promise<void> {
    return this.#lease.close();
  }
}
