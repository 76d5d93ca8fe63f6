import { bug, deserializeError, TrawlError } from '../../base/errors.ts';
import { keepFloat32OnCuda } from '../../base/options/environment.ts';
import type { CudaDevices } from '../inference/device.ts';
import { valuesPerInput } from '../inference/pooling.ts';
import { invalidConfig } from '../model/json-file.ts';
import type { ModelFolder } from '../model/model-folder.ts';
import type { EncodeResult } from '../text-encoder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import { ChunkSizer } from './chunk-size.ts';
import { type CallOptions, type Chunk, EncodeCall, type PoolUser, type Slice } from './encode-call.ts';
import type { WorkerDevice } from './encoder-messages.ts';
import { EncoderThread } from './encoder-thread.ts';
import { WaitingTexts } from './waiting-texts.ts';

/** A thread that dies this many times without finishing a chunk is not restarted. */
const MAX_DEATHS_IN_A_ROW = 3;

/** Threads that share a lone text. With more, a small model's steps are too short to divide. */
const MAX_THREADS_OF_TEXT = 4;

export interface EncoderPoolOptions {
  /** Its prefixes and token limits are ignored; each call has its own (`CallOptions`). */
  readonly model: ModelFolder;
  readonly workers: number;
  /** The CUDA device of each thread, several of which may use one; null (default) for the CPU. */
  readonly cudaDevices?: CudaDevices;
  /** See `OnnxSessionOptions`; default false. */
  readonly shareWeights?: boolean;
  /** Whether threads run the grouping trial (`RunOptions`) before they are ready. Default: with the first texts of equal length. */
  readonly trialAtStart?: boolean;
  /** Tokens of a padded batch, padding included; null: texts run unpadded. Default: null. */
  readonly batchTokens?: number | null;
  /** Called when a device runs out of memory and its batch limit is lowered. */
  readonly onWarning?: (warning: string) => void;
  /** The file that each thread runs; replaceable for tests. */
  readonly workerUrl?: URL;
}

/**
 * One model on encoder threads, each with a single-threaded session or one CUDA device. On the CPU every text runs unpadded, so that
 * the bits of its vector do not depend on the other texts or the number of threads: alone, or with texts of equal length if a trial has
 * shown that this does not change the bits either (`grouping-trial.ts`).
 *
 * Calls share the threads (`waiting-texts.ts`): small calls share a chunk, and a large call does not delay the others. Several
 * encoders may use one pool; each is a `PoolUser`. An idle pool does not keep the process alive. Only `close` frees the memory.
 */
export class EncoderPool {
  readonly dimension: number;
  /** See `TextEncoder.separator`. Only the pool writes `separator` and `failure`. */
  separator: string | null = null;
  /** Set once every thread has died too often, or a file of the model has changed. All texts then fail until a reload opens a new pool. */
  failure: TrawlError | undefined;
  readonly #options: EncoderPoolOptions;
  /** The limit of each thread's batches, equal for all threads of a device. Null: texts run unpadded. */
  readonly #batchTokens: (number | null)[];
  readonly #sizer: ChunkSizer;
  /** Null for a thread that died too often. */
  readonly #threads: (EncoderThread | null)[];
  readonly #deathsInARow: number[];
  readonly #waiting: WaitingTexts;
  /** Texts of chunks whose thread died. Each is retried alone, so that only a text that kills its thread alone fails. */
  readonly #retries: Slice[] = [];
  /** Whether threads count the tokens of waiting texts, to group equal lengths. Not for padded batches, and not after a failed trial. */
  #countsTokens: boolean;
  #opened = false;
  #closed: Promise<void> | undefined;

  private constructor(options: EncoderPoolOptions) {
    const { model, batchTokens = null } = options;
    this.dimension = valuesPerInput(model);
    this.#options = options;
    this.#batchTokens = new Array<number | null>(options.workers).fill(batchTokens);
    this.#sizer = new ChunkSizer(batchTokens);
    this.#waiting = new WaitingTexts(this.#sizer);
    this.#countsTokens = batchTokens === null;
    this.#deathsInARow = new Array<number>(options.workers).fill(0);
    this.#threads = this.#deathsInARow.map((_, place) => this.#startThread(place));
  }

  /** Starts the threads and loads the model. Throws CONFIG_INVALID, MODEL_INVALID, DEVICE_UNAVAILABLE, ENGINE_MISSING. */
  static async open(options: EncoderPoolOptions): Promise<EncoderPool> {
    if (!Number.isSafeInteger(options.workers) || options.workers < 1) {
      throw invalidConfig(`workers is ${options.workers}; it must be a whole number from 1.`);
    }
    const devices = options.cudaDevices?.length ?? options.workers;
    if (devices !== options.workers) throw bug(`${options.workers} workers for ${devices} CUDA devices`);
    if (options.cudaDevices != null) keepFloat32OnCuda();
    const pool = new EncoderPool(options);
    const started = await Promise.allSettled(pool.#threads.map((thread) => thread!.ready));
    const failed = started.find((result) => result.status === 'rejected');
    const error: unknown = failed?.reason ?? pool.failure;
    if (error !== undefined) {
      await pool.close();
      throw error;
    }
    pool.separator = await pool.#threads[0]!.ready;
    pool.#opened = true;
    return pool;
  }

  /** Expected time until the waiting texts of all users are done, in milliseconds; 0 before the first measurement. */
  get expectedWaitMs(): number {
    const threads = Math.max(1, this.#threads.filter((thread) => thread !== null).length);
    return this.#sizer.expectedMs(this.#waiting.weight) / threads;
  }

  /** Embeds texts or, with a cross-encoder, scores pairs: the vector of a pair holds its scores. */
  async encode(inputs: readonly WorkInput[], options: CallOptions): Promise<EncodeResult> {
    if (this.#closed !== undefined) throw new TrawlError('CANCELLED', 'The encoder has been closed.');
    const call = new EncodeCall(inputs, options, this.dimension, this.#sizer);
    if (call.hasWork) this.#waiting.add(call);
    this.#dispatch();
    return call.result;
  }

  /** Rejects the calls of one user that still have waiting texts. A call whose texts are all in running chunks finishes. */
  cancelWaiting(user: PoolUser): void {
    for (const call of this.#waiting.takeCalls(user)) call.cancel(CLOSED_EARLY);
    for (const { call } of this.#retries) if (call.user === user) call.cancel(CLOSED_EARLY);
  }

  /** Rejects waiting calls, waits for the running chunks and ends the threads. Safe to call twice. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const waiting = [...this.#waiting.takeCalls(), ...this.#retries.splice(0).map(({ call }) => call)];
    for (const call of waiting) call.cancel(CLOSED_EARLY);
    await Promise.all(this.#threads.map((thread) => thread?.close()));
  }

  #dispatch(): void {
    if (this.failure !== undefined) this.#failWaiting(this.failure);
    for (const [place, thread] of this.#threads.entries()) {
      if (thread === null || !thread.isIdle) continue;
      const chunk = this.#nextRetry() ?? this.#waiting.nextChunk(this.#threads.length, this.#countsTokens);
      if (chunk === null) return;
      // A chunk counts for the encoder whose call began it.
      chunk.slices[0]!.call.user.chunks++;
      thread.encode(chunk, this.#threadsFor(chunk), this.#batchTokens[place]!);
    }
  }

  /** A lone text gets the cores of the threads that have nothing to do. Call it while the chunk's own thread is still idle. */
  #threadsFor(chunk: Chunk): number {
    const isLone = chunk.slices.length === 1 && chunk.slices[0]!.inputs.length === 1 && this.#waiting.weight === 0;
    if (!isLone || this.#retries.length > 0) return 1;
    return Math.min(MAX_THREADS_OF_TEXT, this.#threads.filter((thread) => thread?.isIdle === true).length);
  }

  #nextRetry(): Chunk | null {
    let slice = this.#retries.shift();
    while (slice?.call.isSettled === true) slice = this.#retries.shift();
    return slice === undefined ? null : { slices: [slice], weight: slice.weight, isGrouped: false, uncounted: [] };
  }

  #startThread(place: number): EncoderThread {
    const { workerUrl = new URL('./encoder-worker.js', import.meta.url), model } = this.#options;
    const device: WorkerDevice = {
      cudaDevice: this.#deviceOf(place),
      shareWeights: this.#options.shareWeights ?? false,
      triesGrouping: (this.#options.trialAtStart ?? false) && this.#batchTokens[place]! === null,
      batchTokens: this.#batchTokens[place]!,
    };
    const thread: EncoderThread = new EncoderThread(workerUrl, model, device, {
      onIdle: () => {
        // The pool's `close` could not end a busy thread: the thread ends here, after its chunk.
        if (this.#closed !== undefined) void thread.close();
        else this.#dispatch();
      },
      // The chunk's `uncounted` texts still wait; now they can join a length bucket.
      onCounted: (chunk, tokens) => this.#waiting.setTokens(chunk.uncounted, tokens),
      onEncoded: (chunk, encoded) => {
        this.#deathsInARow[place] = 0;
        this.#sizer.observe(chunk.weight, encoded.elapsedMs, chunk.isGrouped);
        this.#countsTokens &&= encoded.canGroup !== false;
        this.#limitBatches(place, encoded.batchTokens);
        const changed = encoded.failures.find(({ error }) => error.code === 'FILE_CHANGED');
        if (changed !== undefined) this.failure ??= deserializeError(changed.error);
        let offset = 0;
        for (const slice of chunk.slices) {
          slice.call.user.texts += slice.inputs.length;
          slice.call.accept(slice, encoded, offset);
          offset += slice.inputs.length;
        }
      },
      onDied: (chunk, error) => this.#threadDied(place, chunk, error),
    });
    return thread;
  }

  #deviceOf(place: number): number | null {
    return this.#options.cudaDevices?.[place] ?? null;
  }

  /** The device's other threads, and those that are started later, get the smaller batches too. */
  #limitBatches(place: number, batchTokens: number | null): void {
    const before = this.#batchTokens[place]!;
    if (batchTokens === null || before === null || batchTokens >= before) return;
    const cudaDevice = this.#deviceOf(place);
    for (const other of this.#batchTokens.keys()) {
      if (this.#deviceOf(other) === cudaDevice) this.#batchTokens[other] = batchTokens;
    }
    this.#options.onWarning?.(
      `${cudaDevice === null ? 'The machine' : `cuda:${cudaDevice}`} did not have enough free memory for a batch. Its batches have at most ` +
        `${batchTokens} tokens from now on.`,
    );
  }

  #threadDied(place: number, chunk: Chunk | null, error: TrawlError): void {
    const failure = new TrawlError('ENCODER_FAILED', `${error.message} The text was not encoded; send it again.`, {
      details: error.details,
      cause: error,
    });
    this.#threads[place] = null;
    const slices = chunk?.slices ?? [];
    const texts = slices.reduce((sum, { inputs }) => sum + inputs.length, 0);
    if (texts > 1 && this.#closed === undefined) this.#retries.push(...slices.flatMap(singleTexts));
    else for (const slice of slices) slice.call.fail(slice, failure);
    if (this.#closed !== undefined) return;
    if (!this.#opened) {
      // `open` reports it; a thread that cannot start is not restarted.
      this.failure = failure;
      return;
    }
    this.#deathsInARow[place]!++;
    if (this.#deathsInARow[place]! < MAX_DEATHS_IN_A_ROW) this.#threads[place] = this.#startThread(place);
    else if (this.#threads.every((thread) => thread === null)) {
      this.failure = failure;
      this.#failWaiting(failure);
    }
    // Another thread may be idle.
    this.#dispatch();
  }

  /** Fails every waiting text, because no thread is left. */
  #failWaiting(error: TrawlError): void {
    for (const slice of this.#retries.splice(0)) slice.call.fail(slice, error);
    for (const call of this.#waiting.takeCalls()) {
      for (const bucket of [...call.buckets()]) call.fail(call.takeSlice(bucket, Number.POSITIVE_INFINITY), error);
    }
  }
}

const CLOSED_EARLY = 'The encoder was closed before all texts were started.';

function singleTexts({ call, indexes, inputs, weight }: Slice): Slice[] {
  return indexes.map((index, i) => ({ call, indexes: [index], inputs: [inputs[i]!], weight: weight / inputs.length }));
}
