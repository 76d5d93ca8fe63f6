import { Worker } from 'node:worker_threads';
import { bug } from '../errors.ts';
import type { FromPassageWorker, PassageShard, PassageWorkerData, ToPassageWorker } from './passage-protocol.ts';

export type PassageReply = Exclude<FromPassageWorker, { type: 'ready' }>;

/** One reader thread: it has one message at a time, and keeps the process alive only while it has one. */
export class PassageReader {
  /** Resolves when the files are open; rejects with what keeps them from it. */
  readonly ready: Promise<void>;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  readonly #worker: Worker;
  readonly #onDied: (error: Error) => void;
  #onReply: ((reply: PassageReply) => void) | null = null;
  #isReady = false;
  #closing = false;
  #busySince = 0;

  /** `onDied`: the thread ended without being told to, after it was ready. */
  constructor(shards: readonly PassageShard[], onDied: (error: Error) => void) {
    const workerData: PassageWorkerData = { shards };
    this.#onDied = onDied;
    this.#worker = new Worker(new URL('./passage-worker.js', import.meta.url), { name: 'trawl-passages', workerData });
    this.ready = new Promise((resolve, reject) => {
      this.#worker.on('message', (message: FromPassageWorker) => {
        if (message.type === 'ready') {
          this.#isReady = true;
          this.#worker.unref();
          resolve();
        } else this.#receive(message);
      });
      this.#worker.once('error', (error) => {
        if (this.#isReady) this.#died(error);
        reject(error);
      });
    });
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        if (!this.#closing) this.#died(bug(`the passage thread ended with ${code}`));
        resolve();
      });
    });
  }

  get isIdle(): boolean {
    return this.#isReady && this.#onReply === null && !this.#closing;
  }

  /** How long it has had its message, in milliseconds; 0 without one. */
  get busyMs(): number {
    return this.#onReply === null ? 0 : performance.now() - this.#busySince;
  }

  ask(message: ToPassageWorker, onReply: (reply: PassageReply) => void): void {
    if (!this.isIdle) throw bug('a passage thread was asked while it was not idle');
    this.#onReply = onReply;
    this.#busySince = performance.now();
    this.#worker.ref();
    this.#worker.postMessage(message);
  }

  /** Only between messages. */
  close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      this.#worker.ref();
      this.#worker.postMessage({ type: 'close' } satisfies ToPassageWorker);
    }
    return this.ended;
  }

  #receive(reply: PassageReply): void {
    const told = this.#onReply;
    this.#onReply = null;
    if (!this.#closing) this.#worker.unref();
    told?.(reply);
  }

  #died(error: Error): void {
    if (this.#isReady) this.#onDied(error);
  }
}
