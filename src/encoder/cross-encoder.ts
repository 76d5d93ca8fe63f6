import type { TrawlError } from '../base/errors.ts';
import type { FolderModelIdentity } from './identity/model-identity.ts';
import { identityOn, parseDevice } from './inference/device.ts';
import { invalidModel } from './model/json-file.ts';
import { type ModelFolder, readModelFolder } from './model/model-folder.ts';
import { poolOptions, type RunOptions } from './open-encoder.ts';
import { EncoderPools, type PoolLease } from './pool/encoder-pools.ts';
import type { EncodeOutcome, EncoderLoad } from './text-encoder.ts';
import type { PairTruncation } from './tokenizer/text-pair.ts';

export interface ScoreOptions {
  /** Default `longest-first`. */
  readonly truncate?: PairTruncation;
  /** `none` (default): the model's raw output. `model`: the output after the activation of its config. Both rank passages alike. */
  readonly activation?: 'none' | 'model';
  /** Aborting drops the pairs that no worker has started and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

export interface ScoreResult {
  /** One per passage, in their order; larger is more relevant. NaN for a pair that failed. */
  readonly scores: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  /** Time during which no worker was scoring any of the pairs, in milliseconds. */
  readonly waitedMs: number;
}

/**
 * Scores the relevance of passages to a query (sequence classification with one label, or a decoder's answer). The model reads query and
 * passage together, so nothing can be computed in advance, and it is used to rerank hits. On the CPU, the bits of a pair's score do
 * not depend on the other pairs of the batch. Work runs in worker threads.
 */
export class CrossEncoder {
  readonly identity: FolderModelIdentity;
  readonly #appliesSigmoid: boolean;
  readonly #lease: PoolLease;

  constructor(model: ModelFolder, identity: FolderModelIdentity, lease: PoolLease) {
    this.identity = identity;
    this.#appliesSigmoid = model.activation === 'sigmoid';
    this.#lease = lease;
  }

  /** Queue and counters; a text is a pair. */
  get load(): EncoderLoad {
    return this.#lease.load;
  }

  /** Set when every worker died too often: all pairs fail from then on. */
  get failure(): TrawlError | undefined {
    return this.#lease.pool.failure;
  }

  /** A pair that fails does not fail the call: see `outcomes`. */
  score(query: string, passages: readonly string[], options?: ScoreOptions): Promise<ScoreResult> {
    return this.scorePairs(
      passages.map((passage) => ({ query, passage })),
      options,
    );
  }

  /** The same for pairs of several queries, in one call. */
  async scorePairs(
    pairs: readonly { readonly query: string; readonly passage: string }[],
    options: ScoreOptions = {},
  ): Promise<ScoreResult> {
    const { truncate: truncatePair = 'longest-first', activation = 'none', signal } = options;
    const inputs = pairs.map(({ query, passage }) => ({ query, passage, truncatePair }));
    const tokenize = { prefix: '', maxTokens: this.identity.maxTokens.passage, truncate: 'tail' } as const;
    const { vectors: scores, outcomes, waitedMs } = await this.#lease.encode(inputs, { tokenize, signal });
    const appliesSigmoid = activation === 'model' && this.#appliesSigmoid;
    for (const [i, outcome] of outcomes.entries()) {
      if (!outcome.ok) scores[i] = Number.NaN;
      else if (appliesSigmoid) scores[i] = 1 / (1 + Math.exp(-scores[i]!));
    }
    return { scores, outcomes, waitedMs };
  }

  /** Rejects calls with waiting pairs, waits for the others and ends the workers. Safe to call twice. */
  close(): Promise<void> {
    return this.#lease.close();
  }
}

/**
 * Opens a cross-encoder by its name in `models/` or by its folder. Call `close` when done. Errors: MODEL_NOT_FOUND,
 * MODEL_INVALID (also for an encoder), CONFIG_INVALID, DEVICE_UNAVAILABLE.
 */
export async function openCrossEncoder(nameOrFolder: string, options: RunOptions = {}): Promise<CrossEncoder> {
  const devices = parseDevice(options.device ?? 'cpu');
  const model = await readModelFolder(nameOrFolder, {}, { kind: 'cross-encoder' });
  const { folder, labels = 1 } = model;
  if (labels !== 1) {
    throw invalidModel(
      `${folder} returns ${labels} values per pair; a reranker returns one. Use a model with a single label.`,
      { details: { labels } },
    );
  }
  const lease = await new EncoderPools().lease(await poolOptions(model, devices, options));
  return new CrossEncoder(model, identityOn(devices, model.identity), lease);
}
