import { join } from 'node:path';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { CHECKPOINT_FILE, type CheckpointRecord } from '../../src/index/manifest/build-records.ts';
import type { EncodedBatch } from './encode-passages.ts';
import type { ShardVectors } from './shard-vectors.ts';

/** An encoder that may change is checked before each checkpoint; the time between two is at least this multiple of the check's own. */
const CHECK_SHARE = 20;
/** Limit of that check when a build ends early. Without it, the rows since the last checkpoint are embedded again. */
const LAST_CHECK_MS = 5_000;

interface CheckpointOptions {
  /** The checkpoint of an earlier run. */
  readonly earlier: CheckpointRecord | undefined;
  /** Checked before each checkpoint; undefined for precomputed vectors. */
  readonly encoder: TextEncoder | undefined;
  /** Milliseconds between checkpoints. 0: after every batch. */
  readonly everyMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The rows that a build adds to a shard, with checkpoints, from which another process can resume. */
export class CheckpointedRows {
  /** Rows whose vectors come from an earlier run. */
  readonly resumed: number;
  readonly #folder: string;
  readonly #vectors: ShardVectors;
  readonly #options: CheckpointOptions;
  readonly #earlierTokens: number;
  #tokens: number;
  #truncatedPassages: number;
  #savedAt = performance.now();
  #savedRows: number;
  #checkMs = 0;

  constructor(folder: string, vectors: ShardVectors, options: CheckpointOptions) {
    this.#folder = folder;
    this.#vectors = vectors;
    this.#options = options;
    this.resumed = vectors.rowsWritten;
    this.#savedRows = this.resumed;
    const { tokens, truncatedPassages } = this.resumed > 0 ? options.earlier! : { tokens: 0, truncatedPassages: 0 };
    this.#earlierTokens = tokens;
    this.#tokens = tokens;
    this.#truncatedPassages = truncatedPassages;
  }

  /** Rows of all runs. */
  get written(): number {
    return this.#vectors.rowsWritten;
  }

  /** Tokens that this run embedded. */
  get tokens(): number {
    return this.#tokens - this.#earlierTokens;
  }

  /** Truncated passages of all runs. */
  get truncatedPassages(): number {
    return this.#truncatedPassages;
  }

  async append({ vectors, tokens, truncatedPassages }: EncodedBatch): Promise<void> {
    await this.#vectors.append(vectors);
    this.#tokens += tokens;
    this.#truncatedPassages += truncatedPassages;
  }

  /** @throws TrawlError as `save`. */
  async saveIfDue(): Promise<void> {
    const { everyMs } = this.#options;
    if (performance.now() - this.#savedAt >= Math.max(everyMs, CHECK_SHARE * this.#checkMs)) await this.save();
  }

  /**
   * Makes all rows durable.
   *
   * @throws TrawlError MODEL_MISMATCH, ENDPOINT_FAILED, CANCELLED; errors of writing.
   */
  async save(signal = this.#options.signal): Promise<void> {
    if (this.written === this.#savedRows) return;
    const checkedAt = performance.now();
    await checkUnchanged(this.#options.encoder, signal);
    this.#checkMs = performance.now() - checkedAt;
    const at = await this.#vectors.checkpoint();
    const record = { ...at, tokens: this.#tokens, truncatedPassages: this.#truncatedPassages };
    await writeJsonDurably(join(this.#folder, CHECKPOINT_FILE), record);
    this.#savedAt = performance.now();
    this.#savedRows = at.rows;
  }

  /** Keeps the rows that were embedded before an error, unless they may be of another model. */
  async saveAfter(error: unknown): Promise<void> {
    if (asTrawlError(error).code === 'MODEL_MISMATCH') return;
    // If the disk failed, this fails as well.
    await this.save(AbortSignal.timeout(LAST_CHECK_MS)).catch(() => undefined);
  }
}

/** Rows become durable only after this, so that no shard has rows of two models. */
async function checkUnchanged(encoder: TextEncoder | undefined, signal: AbortSignal | undefined): Promise<void> {
  try {
    await encoder?.check?.(signal);
  } catch (error) {
    const { code, message, details } = asTrawlError(error);
    if (code !== 'MODEL_MISMATCH') throw error;
    throw new TrawlError(
      code,
      `The model behind the endpoint changed during the build; the rows since the last checkpoint are not kept. ${message} ` +
        'Then the same command resumes the build.',
      { details, cause: error },
    );
  }
}
