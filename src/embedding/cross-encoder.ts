import { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';
import { parseDevice } from './device.ts';
import { EncoderPool } from './encoder-pool.ts';
import { type ModelFolder, readModelFolder } from './model-folder.ts';
import { poolOptions, type RunOptions } from './open-encoder.ts';
import type { EncodeOutcome } from './text-encoder.ts';
import type { PairTruncation } from './text-pair.ts';

export interface ScoreOptions {
  /** Default `longest-first`. */
  readonly truncate?: PairTruncation;
  /**
   * `none` (default): the model's raw value, which orders passages of one query. `model`: what the model's own
   * configuration makes of it, usually the sigmoid, in (0, 1). Both order alike.
   */
  readonly activation?: 'none' | 'model';
  /** Aborting drops pairs that have not begun and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

export interface ScoreResult {
  /** One per passage, in their order; larger is more relevant. NaN where the pair failed. */
  readonly scores: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
}

/**
 * Query and passage in, relevance out (BERT-family sequence classification with one value). Each pair is looked at as a
 * whole, so nothing can be computed beforehand: it reranks what an index has found. On the CPU a pair has the same bits
 * in any company. Work runs in worker threads.
 */
export interface CrossEncoder {
  readonly identity: ModelIdentity;
  /** One failing pair fails alone. */
  score(query: string, passages: readonly string[], options?: ScoreOptions): Promise<ScoreResult>;
  /** Waits for running pairs, then ends the workers. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * A cross-encoder for a model's name or folder. Errors: MODEL_NOT_FOUND, MODEL_INVALID (also for an encoder),
 * CONFIG_INVALID, DEVICE_UNAVAILABLE. Call `close` when done.
 */
export async function openCrossEncoder(nameOrFolder: string, options: RunOptions = {}): Promise<CrossEncoder> {
  const devices = parseDevice(options.device ?? 'cpu');
  const model = await readModelFolder(nameOrFolder, {}, { kind: 'cross-encoder' });
  const { labels } = model;
  if (labels !== null && labels !== 1) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${model.folder} gives ${labels} values per pair; a reranker gives one. A classifier of ${labels} classes is none.`,
      { details: { labels } },
    );
  }
  return new PooledCrossEncoder(model, await EncoderPool.open(await poolOptions(model, devices, options)));
}

class PooledCrossEncoder implements CrossEncoder {
  readonly #model: ModelFolder;
  readonly #pool: EncoderPool;

  constructor(model: ModelFolder, pool: EncoderPool) {
    this.#model = model;
    this.#pool = pool;
  }

  get identity(): ModelIdentity {
    return this.#pool.identity;
  }

  async score(query: string, passages: readonly string[], options: ScoreOptions = {}): Promise<ScoreResult> {
    const { truncate = 'longest-first', activation = 'none', signal } = options;
    const pairs = passages.map((passage) => ({ query, passage, truncatePair: truncate }));
    const { vectors: scores, outcomes } = await this.#pool.encode(pairs, {
      kind: 'passage',
      ...(signal === undefined ? {} : { signal }),
    });
    const isSigmoid = activation === 'model' && this.#model.activation === 'sigmoid';
    for (const [i, outcome] of outcomes.entries()) {
      if (!outcome.ok) scores[i] = Number.NaN;
      else if (isSigmoid) scores[i] = 1 / (1 + Math.exp(-scores[i]!));
    }
    return { scores, outcomes };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
