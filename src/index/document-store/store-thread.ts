import { Worker } from 'node:worker_threads';
import { bug, deserializeError } from '../../base/errors.ts';
import type { StoreCall, StoreReply, StoreRequests } from './store-protocol.ts';

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The thread that parses, checks and stores documents, one request after another. What it has answered is on the disk.
 */
export class StoreThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #calls = 0;
  #failure: unknown;

  constructor() {
    this.#worker = new Worker(new URL('./store-worker.js', import.meta.url), { name: 'trawl-documents' });
    this.#worker.unref();
    this.#worker.on('message', (reply: StoreReply) => this.#receive(reply));
    this.#worker.once('error', (error) => {
      this.#failure = error;
    });
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#failure ??= bug('the thread of the documents has ended');
        for (const { reject } of this.#waiting.values()) reject(this.#failure);
        this.#waiting.clear();
        resolve();
      });
    });
  }

  /** @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE; any error if the thread has died: the server must be started again. */
  ask<Name extends keyof StoreRequests>(
    name: Name,
    asked: StoreRequests[Name]['asked'],
  ): Promise<StoreRequests[Name]['answer']> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const call = this.#calls++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve: resolve as (answer: unknown) => void, reject });
      this.#worker.ref();
      this.#worker.postMessage({ call, name, asked } as StoreCall);
    });
  }

  /** Waits for the requests, then closes the stores. */
  async close(): Promise<void> {
    this.#worker.ref();
    this.#worker.postMessage('close');
    await this.#ended;
  }

  #receive(reply: StoreReply): void {
    const waiting = this.#waiting.get(reply.call);
    this.#waiting.delete(reply.call);
    if (this.#waiting.size === 0) this.#worker.unref();
    if (reply.ok) waiting?.resolve(reply.answer);
    else waiting?.reject(deserializeError(reply.error));
  }
}
