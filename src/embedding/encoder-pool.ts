import { bug, TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';
import { ChunkSizer } from './chunk-size.ts';
import type { CudaDevices } from './device.ts';
import { type Chunk, EncodeJob, type Piece } from './encode-job.ts';
import { valuesPerInput, type WorkerDevice, type WorkInput } from './encoder-messages.ts';
import { EncoderThread } from './encoder-thread.ts';
import type { ModelFolder } from './model-folder.ts';
import type { EncodeOptions, EncodeResult, EncoderLoad, TextEncoder } from './text-encoder.ts';
import { WaitingTexts } from './waiting-texts.ts';

/** Deaths in a row, without a finished chunk between them, after which a place in the pool stays empty. */
const MAX_DEATHS_IN_A_ROW = 3;
/** Longest wait for native code at the end of a process that did not close its pool. */
const EXIT_WAIT_MS = 5_000;

/** Tokens of one run on a GPU. */
const CUDA_BATCH_TOKENS = 16_384;

export interface EncoderPoolOptions {
  readonly model: ModelFolder;
  /** Threads on the CPU, at least 1, or one for each CUDA device. */
  readonly workers: number;
  /** One for each worker; null: the CPU. */
  readonly cudaDevices?: CudaDevices;
  /** See `OnnxSessionOptions`. */
  readonly shareWeights?: boolean;
  /** See `RunOptions`. */
  readonly longLived?: boolean;
  /** See `WorkerDevice`; default: null on the CPU, 16,384 on CUDA. */
  readonly batchTokens?: number | null;
  /** The file each thread runs; replaceable for tests. */
  readonly workerUrl?: URL;
}

/**
 * A `TextEncoder` over worker threads, each with one single-threaded session or one CUDA device. On the CPU every text
 * runs unpadded, alone or with others of the same length (`grouping-trial.ts`), so its vector has the same bits in any
 * company and with any number of workers.
 *
 * Calls share the workers (`waiting-texts.ts`): small ones meet in one chunk, and a big one does not hold up the others.
 *
 * An idle pool does not keep the process alive. Should the process end with the pool at work, it first waits for the
 * texts in hand (onnxruntime aborts otherwise); `close` is still the proper way, and the only one that frees the memory.
 */
export class EncoderPool implements TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  readonly #options: EncoderPoolOptions;
  readonly #batchTokens: number | null;
  readonly #sizer: ChunkSizer;
  /** Null where a thread died too often. */
  readonly #threads: (EncoderThread | null)[];
  readonly #deathsInARow: number[];
  readonly #waiting: WaitingTexts;
  /** Texts that were in hand when a thread died, to be tried alone: only the one that kills again is lost. */
  readonly #suspects: Piece[] = [];
  /** Whether lengths are worth knowing: where texts of one length cannot run together they are not. */
  #counts: boolean;
  #texts = 0;
  #chunks = 0;
  readonly #onProcessExit = () => {
    // All are told to stop before any is waited for, so that they share one deadline.
    for (const thread of this.#threads) thread?.stopAndWait(0);
    const deadline = performance.now() + EXIT_WAIT_MS;
    for (const thread of this.#threads) thread?.stopAndWait(Math.max(0, deadline - performance.now()));
  };
  #separator: string | null = null;
  #opened = false;
  #closed: Promise<void> | null = null;
  #failure: TrawlError | null = null;

  private constructor(options: EncoderPoolOptions) {
    const { model, cudaDevices = null } = options;
    // A GPU chooses its algorithms by the shape of the batch.
    this.identity = cudaDevices === null ? model.identity : { ...model.identity, batchInvariant: false };
    this.dimension = valuesPerInput(model);
    this.#options = options;
    this.#batchTokens =
      options.batchTokens !== undefined ? options.batchTokens : cudaDevices === null ? null : CUDA_BATCH_TOKENS;
    this.#sizer = new ChunkSizer(model.identity.maxTokens, this.#batchTokens);
    this.#waiting = new WaitingTexts(this.#sizer);
    this.#counts = this.#batchTokens === null;
    this.#deathsInARow = new Array<number>(options.workers).fill(0);
    this.#threads = this.#deathsInARow.map((_, place) => this.#startThread(place));
    process.once('exit', this.#onProcessExit);
  }

  /** Starts the threads and waits until each has its model. Throws what keeps one from it (MODEL_INVALID). */
  static async open(options: EncoderPoolOptions): Promise<EncoderPool> {
    if (!Number.isSafeInteger(options.workers) || options.workers < 1) {
      throw new TrawlError('CONFIG_INVALID', `workers is ${options.workers}; it must be a whole number from 1.`);
    }
    const devices = options.cudaDevices?.length ?? options.workers;
    if (devices !== options.workers) throw bug(`${options.workers} workers for ${devices} CUDA devices`);
    const pool = new EncoderPool(options);
    const started = await Promise.allSettled(pool.#threads.map((thread) => thread!.ready));
    const failed = started.find((result) => result.status === 'rejected');
    const error: unknown = failed?.reason ?? pool.#failure;
    if (error === null) {
      const [first] = started;
      if (first?.status === 'fulfilled') pool.#separator = first.value;
      pool.#opened = true;
      return pool;
    }
    await pool.close();
    throw error;
  }

  get failure(): TrawlError | undefined {
    return this.#failure ?? undefined;
  }

  get separator(): string | null {
    return this.#separator;
  }

  /** Texts; of a cross-encoder pairs, whose vectors are their scores. */
  async encode(inputs: readonly WorkInput[], options: EncodeOptions): Promise<EncodeResult> {
    if (this.#closed !== null) throw new TrawlError('CANCELLED', 'The encoder has been closed.');
    const job = new EncodeJob(inputs, options, this.dimension, this.#sizer);
    if (job.hasWork) this.#waiting.add(job);
    this.#dispatch();
    return job.result;
  }

  get load(): EncoderLoad {
    const threads = Math.max(1, this.#threads.filter((thread) => thread !== null).length);
    return {
      waitingTexts: this.#waiting.texts,
      expectedWaitMs: this.#sizer.expectedMs(this.#waiting.weight) / threads,
      texts: this.#texts,
      droppedTexts: this.#waiting.droppedTexts,
      chunks: this.#chunks,
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const waiting = [...this.#waiting.takeAll(), ...this.#suspects.splice(0).map(({ job }) => job)];
    for (const job of waiting) job.cancel('The encoder was closed before all texts had begun.');
    await Promise.all(this.#threads.map((thread) => thread?.close()));
    process.removeListener('exit', this.#onProcessExit);
  }

  /** Gives idle threads chunks. */
  #dispatch(): void {
    if (this.#failure !== null) this.#failWaiting(this.#failure);
    for (const thread of this.#threads) {
      if (thread === null || !thread.isIdle) continue;
      const chunk = this.#suspect() ?? this.#waiting.gather(this.#threads.length, this.#counts);
      if (chunk === null) return;
      this.#chunks++;
      thread.encode(chunk);
    }
  }

  #suspect(): Chunk | null {
    let piece = this.#suspects.shift();
    while (piece?.job.isSettled === true) piece = this.#suspects.shift();
    return piece === undefined ? null : { pieces: [piece], weight: piece.weight, isFilled: false, uncounted: [] };
  }

  #startThread(place: number): EncoderThread {
    const { workerUrl = new URL('./encoder-worker.js', import.meta.url), model, cudaDevices = null } = this.#options;
    const device: WorkerDevice = {
      cudaDevice: cudaDevices?.[place] ?? null,
      shareWeights: this.#options.shareWeights ?? false,
      triesFirst: (this.#options.longLived ?? false) && this.#batchTokens === null,
      batchTokens: this.#batchTokens,
    };
    const thread: EncoderThread = new EncoderThread(workerUrl, model, device, {
      onIdle: () => {
        // A chunk's end may find the pool closing: this thread's turn to end.
        if (this.#closed !== null) void thread.close();
        else this.#dispatch();
      },
      onCounted: (chunk, tokens) => this.#waiting.counted(chunk.uncounted, tokens),
      onEncoded: (chunk, encoded) => {
        this.#deathsInARow[place] = 0;
        this.#sizer.observe(chunk.weight, encoded.elapsedMs, chunk.isFilled);
        this.#counts &&= encoded.groups !== false;
        let at = 0;
        for (const piece of chunk.pieces) {
          piece.job.accept(piece, encoded, at);
          at += piece.inputs.length;
        }
        this.#texts += at;
      },
      onDied: (chunk, error) => this.#replace(place, chunk, error),
    });
    return thread;
  }

  #replace(place: number, chunk: Chunk | null, error: TrawlError): void {
    const failure = asEncodingFailure(error);
    this.#threads[place] = null;
    const pieces = chunk?.pieces ?? [];
    const texts = pieces.reduce((sum, { inputs }) => sum + inputs.length, 0);
    if (texts > 1 && this.#closed === null) this.#suspects.push(...pieces.flatMap(apart));
    else for (const piece of pieces) piece.job.fail(piece, failure);
    if (this.#closed !== null) return;
    if (!this.#opened) {
      // What goes wrong the first time is the opener's to report, not to try again.
      this.#failure = failure;
      return;
    }
    this.#deathsInARow[place]!++;
    if (this.#deathsInARow[place]! < MAX_DEATHS_IN_A_ROW) this.#threads[place] = this.#startThread(place);
    else if (this.#threads.every((thread) => thread === null)) {
      this.#failure = failure;
      this.#failWaiting(failure);
    }
    // Another thread may be idle.
    this.#dispatch();
  }

  /** With no thread left every text fails, as it would one by one. */
  #failWaiting(error: TrawlError): void {
    for (const piece of this.#suspects.splice(0)) piece.job.fail(piece, error);
    for (const job of this.#waiting.takeAll()) {
      for (const lane of [...job.lanes()]) job.fail(job.takePiece(lane, Number.POSITIVE_INFINITY), error);
    }
  }
}

function apart({ job, places, inputs, weight }: Piece): Piece[] {
  return places.map((place, i) => ({ job, places: [place], inputs: [inputs[i]!], weight: weight / inputs.length }));
}

function asEncodingFailure(error: TrawlError): TrawlError {
  return new TrawlError('ENCODING_FAILED', `${error.message} The text it had in hand is lost; send it again.`, {
    details: error.details,
    cause: error,
  });
}
