import { Worker } from 'node:worker_threads';
import { bug } from '../errors.ts';
import type { FromPassageWorker, PassageShard, PassageWorkerData, ToPassageWorker } from './passage-protocol.ts';

export type PassageReply = Exclude<FromPassageWorker, { type: 'ready' }>;

/** Who waits for a message's answer: told one or the other. */
export interface Question {
  onReply(reply: PassageReply): void;
  /** The thread has died with it. */
  onLost(error: Error): void;
}

/** One reader thread: it has one message at a time, and keeps the process alive only while it has one. */
export class PassageReader {
  /** Resolves when the files are open; rejects with what keeps them from it. */
  readonly ready: Promise<void>;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  readonly #worker: Worker;
  #question: Question | null = null;
  #isReady = false;
  #closing = false;
  #hasEnded = false;
  #busySince = 0;

  /** `onDied`: the thread ended without being told to, after it was ready. */
  constructor(shards: readonly PassageShard[], onDied: (error: Error) => void) {
    const workerData: PassageWorkerData = { shards };
    let failure: Error | undefined;
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
        failure = error;
      });
      this.#worker.once('exit', (code) => {
        this.#hasEnded = true;
        const error = failure ?? bug(`the passage thread ended with ${code}`);
        const wasReady = this.#isReady;
        reject(error);
        const question = this.#question;
        this.#question = null;
        question?.onLost(error);
        if (wasReady && !this.#closing) onDied(error);
      });
    });
    this.ended = new Promise((resolve) => this.#worker.once('exit', () => resolve()));
  }

  get isIdle(): boolean {
    return this.#isReady && this.#question === null && !this.#closing && !this.#hasEnded;
  }

  /** How long it has had its message, in milliseconds; 0 without one. */
  get busyMs(): number {
    return this.#question === null ? 0 : performance.now() - this.#busySince;
  }

  ask(message: ToPassageWorker, question: Question): void {
    if (!this.isIdle) throw bug('a passage thread was asked while it was not idle');
    this.#question = question;
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
    const question = this.#question;
    this.#question = null;
    if (!this.#closing) this.#worker.unref();
    question?.onReply(reply);
  }
}
