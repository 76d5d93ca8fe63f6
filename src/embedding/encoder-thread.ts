import { Worker } from 'node:worker_threads';
import { bug, deserializeError, TrawlError } from '../errors.ts';
import { disableTelemetry } from '../options/onnxruntime-telemetry.ts';
import type { Chunk, Piece } from './encode-job.ts';
import type {
  EncodedChunk,
  FromWorker,
  ToWorker,
  WorkerDevice,
  WorkerSetup,
  WorkInput,
  WorkPart,
} from './encoder-messages.ts';
import type { ModelFolder } from './model-folder.ts';
import { RunGate } from './run-gate.ts';
import type { TextKind, TruncateSide } from './text-encoder.ts';

export interface EncoderThreadEvents {
  /** The thread has no chunk and takes one. */
  onIdle(): void;
  /** Tokens of the texts of `chunk.uncounted`, while the chunk itself is at work. */
  onCounted(chunk: Chunk, tokens: Int32Array): void;
  onEncoded(chunk: Chunk, encoded: EncodedChunk): void;
  /** It ended without being asked to; `chunk` is what it had. */
  onDied(chunk: Chunk | null, error: TrawlError): void;
}

/** One worker thread's life: starting, idle, at work on a chunk, ended. */
export class EncoderThread {
  /** Resolves with the model's separator when it is loaded; rejects with why it is not. */
  readonly ready: Promise<string | null>;
  /** Resolves when the thread has ended, for whatever reason. */
  readonly ended: Promise<void>;
  readonly #worker: Worker;
  readonly #gate = new RunGate();
  readonly #events: EncoderThreadEvents;
  #state: 'starting' | 'idle' | 'busy' | 'closing' | 'ended' = 'starting';
  #chunk: Chunk | null = null;
  #lastError: TrawlError | null = null;

  constructor(workerUrl: URL, model: ModelFolder, device: WorkerDevice, events: EncoderThreadEvents) {
    this.#events = events;
    const setup: WorkerSetup = { model, device, gate: this.#gate.shared };
    disableTelemetry();
    // Flags of the main thread such as --input-type would keep a worker file from loading.
    this.#worker = new Worker(workerUrl, { name: 'trawl-encoder', workerData: setup, execArgv: [] });
    this.ready = new Promise((resolve, reject) => {
      this.#worker.on('message', (message: FromWorker) => this.#receive(message, resolve, reject));
      this.#worker.once('exit', (code) => reject(this.#lastError ?? died(code)));
    });
    // Whoever opens the pool awaits it; a restarted thread's failure comes by onDied.
    this.ready.catch(() => {});
    this.#worker.on('error', (error) => {
      this.#lastError ??= new TrawlError('ENCODING_FAILED', `An encoder thread failed: ${String(error)}`, {
        cause: error,
      });
    });
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#exited(code);
        resolve();
      });
    });
  }

  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  encode(chunk: Chunk): void {
    if (!this.isIdle) throw bug(`A chunk was given to an encoder thread that is ${this.#state}`);
    this.#state = 'busy';
    this.#chunk = chunk;
    // While there is work the process stays; an idle thread does not keep it.
    this.#worker.ref();
    this.#post({ type: 'encode', parts: partsOf(chunk.pieces), uncounted: partsOf(chunk.uncounted) });
  }

  /** Asks an idle or starting thread to end; a busy one ends after its chunk. Returns `ended`. */
  close(): Promise<void> {
    if (this.#state === 'idle' || this.#state === 'starting') {
      this.#state = 'closing';
      this.#worker.ref();
      this.#post({ type: 'close' });
    }
    return this.ended;
  }

  /** For a process that ends now: blocks until no native code runs on the thread. */
  stopAndWait(timeoutMs: number): void {
    if (this.#state !== 'ended') this.#gate.stopAndWait(timeoutMs);
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWorker, ready: (separator: string | null) => void, failed: (error: TrawlError) => void): void {
    switch (message.type) {
      case 'ready':
        ready(message.separator);
        if (this.#state === 'starting') this.#becomeIdle();
        break;
      case 'failed':
        this.#lastError = deserializeError(message.error);
        failed(this.#lastError);
        break;
      case 'counted':
        this.#events.onCounted(this.#chunk!, message.tokens);
        break;
      case 'encoded': {
        const chunk = this.#chunk!;
        this.#chunk = null;
        this.#events.onEncoded(chunk, message);
        this.#becomeIdle();
        break;
      }
      default:
        throw bug(`Unknown message from an encoder thread: ${message satisfies never}`);
    }
  }

  #becomeIdle(): void {
    this.#state = 'idle';
    this.#worker.unref();
    this.#events.onIdle();
  }

  #exited(code: number): void {
    const expected = this.#state === 'closing';
    const chunk = this.#chunk;
    this.#state = 'ended';
    this.#chunk = null;
    if (!expected) this.#events.onDied(chunk, this.#lastError ?? died(code));
  }
}

/** Pieces that are encoded alike become one part: a message of a few objects is cheap, one of hundreds is not. */
function partsOf(pieces: readonly Piece[]): WorkPart[] {
  const parts: { inputs: WorkInput[]; kind: TextKind; truncate: TruncateSide }[] = [];
  for (const { job, inputs } of pieces) {
    const last = parts.at(-1);
    if (last !== undefined && last.kind === job.kind && last.truncate === job.truncate) last.inputs.push(...inputs);
    else parts.push({ inputs: [...inputs], kind: job.kind, truncate: job.truncate });
  }
  return parts;
}

function died(code: number): TrawlError {
  return new TrawlError('ENCODING_FAILED', `An encoder thread ended unexpectedly (exit code ${code}).`, {
    details: { exitCode: code },
  });
}
