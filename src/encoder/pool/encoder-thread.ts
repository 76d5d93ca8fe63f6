import { Worker } from 'node:worker_threads';
import { bug, deserializeError, TrawlError } from '../../base/errors.ts';
import { disableTelemetry } from '../../base/options/environment.ts';
import type { ModelFolder } from '../model/model-folder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import type { TokenizeOptions } from '../tokenizer/truncation.ts';
import type { Chunk, Slice } from './encode-call.ts';
import type { EncodedChunk, FromWorker, ToWorker, WorkerDevice, WorkerSetup, WorkPart } from './encoder-messages.ts';
import { RunGate, releaseGate, waitAtExit } from './run-gate.ts';

interface EncoderThreadEvents {
  onIdle(): void;
  /** Token counts of `chunk.uncounted`; the chunk itself is still being encoded. */
  onCounted(chunk: Chunk, tokens: Int32Array): void;
  onEncoded(chunk: Chunk, encoded: EncodedChunk): void;
  /** The thread ended without being closed; `chunk` is its unfinished work. */
  onDied(chunk: Chunk | null, error: TrawlError): void;
}

/** One worker thread and its state: starting, idle, busy with a chunk, closing or ended. */
export class EncoderThread {
  /** Resolves with the model's separator when the model is loaded; rejects when it cannot be loaded. */
  readonly ready: Promise<string | null>;
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
    // With flags of the main thread such as --input-type, the worker file would not load.
    this.#worker = new Worker(workerUrl, { name: 'trawl-encoder', workerData: setup, execArgv: [] });
    waitAtExit(this.#gate);
    this.ready = new Promise((resolve, reject) => {
      this.#worker.on('message', (message: FromWorker) => this.#receive(message, resolve, reject));
      this.#worker.once('exit', (code) => reject(this.#lastError ?? died(code)));
    });
    // `EncoderPool.open` awaits `ready`; onDied reports the failure of a restarted thread.
    this.ready.catch(() => {});
    this.#worker.on('error', (error) => {
      this.#lastError ??= new TrawlError('ENCODER_FAILED', `An encoder thread failed: ${String(error)}`, {
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

  /** `threads` and `batchTokens`: see `ToWorker`. */
  encode(chunk: Chunk, threads: number, batchTokens: number | null): void {
    if (!this.isIdle) throw bug(`An encoder thread was given a chunk while ${this.#state}`);
    this.#state = 'busy';
    this.#chunk = chunk;
    // A busy thread keeps the process alive, an idle one does not.
    this.#worker.ref();
    const [parts, uncounted] = [joinSlices(chunk.slices), joinSlices(chunk.uncounted)];
    this.#post({ type: 'encode', parts, uncounted, threads, batchTokens });
  }

  /** Ends an idle or starting thread. A busy one must be closed again after its chunk. Returns `ended`. */
  close(): Promise<void> {
    if (this.#state === 'idle' || this.#state === 'starting') {
      this.#state = 'closing';
      this.#worker.ref();
      this.#post({ type: 'close' });
    }
    return this.ended;
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
    releaseGate(this.#gate);
    const expected = this.#state === 'closing';
    const chunk = this.#chunk;
    this.#state = 'ended';
    this.#chunk = null;
    if (!expected) this.#events.onDied(chunk, this.#lastError ?? died(code));
  }
}

/** Joins neighbouring slices with equal options, because a message with hundreds of objects is expensive. */
function joinSlices(slices: readonly Slice[]): WorkPart[] {
  const parts: { inputs: WorkInput[]; tokenize: TokenizeOptions }[] = [];
  for (const { call, inputs } of slices) {
    const { prefix, maxTokens, truncate } = call.tokenize;
    const last = parts.at(-1);
    const own = last?.tokenize;
    if (own?.prefix === prefix && own.maxTokens === maxTokens && own.truncate === truncate)
      last!.inputs.push(...inputs);
    else parts.push({ inputs: [...inputs], tokenize: call.tokenize });
  }
  return parts;
}

function died(code: number): TrawlError {
  return new TrawlError('ENCODER_FAILED', `An encoder thread ended unexpectedly (exit code ${code}).`, {
    details: { exitCode: code },
  });
}
