import type { TrawlError } from '../base/errors.ts';
import type { FolderModelIdentity } from './identity/model-identity.ts';
import { identityOn } from './inference/device.ts';
import type { EncoderPoolOptions } from './pool/encoder-pool.ts';
import type { EncoderPools } from './pool/encoder-pools.ts';
import { PoolAccess } from './pool/pool-access.ts';
import type { EncodeOptions, EncodeResult, EncoderInput, EncoderLoad, TextEncoder } from './text-encoder.ts';

/** A `TextEncoder` on its own pool or on a shared one. Prefixes and token limits belong to the encoder, not to the pool. */
export class ModelEncoder implements TextEncoder {
  readonly identity: FolderModelIdentity;
  readonly #access: PoolAccess;

  private constructor(identity: FolderModelIdentity, access: PoolAccess) {
    this.identity = identity;
    this.#access = access;
  }

  /** Takes a pool from `pools`; without `pools`, opens a separate one. Errors as of `EncoderPool.open`. */
  static async open(options: EncoderPoolOptions, pools?: EncoderPools): Promise<ModelEncoder> {
    const identity = identityOn(options.cudaDevices ?? null, options.model.identity);
    return new ModelEncoder(identity, await PoolAccess.open(options, pools));
  }

  get dimension(): number {
    return this.#access.pool.dimension;
  }

  get separator(): string | null {
    return this.#access.pool.separator;
  }

  get failure(): TrawlError | undefined {
    return this.#access.pool.failure;
  }

  get load(): EncoderLoad {
    return this.#access.load;
  }

  async encode(
    inputs: readonly EncoderInput[],
    { inputType, truncate = 'tail', signal }: EncodeOptions,
  ): Promise<EncodeResult> {
    const { prefixes, maxTokens } = this.identity;
    const tokenize = { prefix: prefixes[inputType], maxTokens: maxTokens[inputType], truncate };
    return this.#access.encode(inputs, { tokenize, signal });
  }

  close(): Promise<void> {
    return this.#access.close();
  }
}
