import { Worker } from 'node:worker_threads';
import { bug } from '../../base/errors.ts';
import type { FromPassageWorker, PassageShard, PassageWorkerData, ToPassageWorker } from './passage-protocol.ts';

export type PassageReply = Exclude<FromPassageWorker, { type: 'ready' }>;

/** For each message, exactly one of the two methods is called. */
interface ReplyHandler {
  onReply(reply: PassageReply): void;
  /** The thread died before it replied. */
  onDeath(error: Error): void;
}

/** A reader thread. It gets one message at a time and keeps the process alive only while it works on one. */
export class PassageReader {
  /** Resolves when the files are open. */
  readonly ready: Promise<void>;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  readonly #worker: Worker;
  #handler: ReplyHandler | null = null;
  #isReady = false;
  #closing = false;
  #hasEnded = false;
  #busySince = 0;

  /** `onDied` is called when the thread ends on its own after it was ready. */
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
        const error = failure ?? bug(`the passage reader ended with exit code ${code}`);
        const wasReady = this.#isReady;
        reject(error);
        const handler = this.#handler;
        this.#handler = null;
        handler?.onDeath(error);
        if (wasReady && !this.#closing) onDied(error);
      });
    });
    this.ended = new Promise((resolve) => this.#worker.once('exit', () => resolve()));
  }

  get isIdle(): boolean {
    return this.#isReady && this.#handler === null && !this.#closing && !this.#hasEnded;
  }

  /** Milliseconds since the current message was sent; 0 without one. */
  get busyMs(): number {
    return this.#handler === null ? 0 : performance.now() - this.#busySince;
  }

  ask(message: ToPassageWorker, handler: ReplyHandler): void {
    if (!this.isIdle) throw bug('a passage reader got a message while it was not idle');
    this.#handler = handler;
    this.#busySince = performance.now();
    this.#worker.ref();
    this.#worker.postMessage(message);
  }

  /** Call only while the reader has no message. Resolves when the thread has ended. */
  close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      this.#worker.ref();
      this.#worker.postMessage({ type: 'close' } satisfies ToPassageWorker);
    }
    return this.ended;
  }

  #receive(reply: PassageReply): void {
    const handler = this.#handler;
    this.#handler = null;
    if (!this.#closing) this.#worker.unref();
    handler?.onReply(reply);
  }
}
