import { Worker } from 'node:worker_threads';
import { deserializeError } from '../../src/base/errors.ts';
import type { BatchFacts, PrepareReply, PrepareRequest, WorkerSetup } from './prepare-messages.ts';

interface Waiting {
  resolve(reply: PrepareReply): void;
  reject(error: unknown): void;
}

/** A batch in a worker. */
export interface BatchJob {
  readonly facts: Promise<BatchFacts>;
  /** Formats and compresses the rows. `start`: number of passages before the batch. Call once, after `facts` resolved. */
  format(start: number, header: boolean): Promise<Uint8Array>;
}

/** Worker threads that split documents and format rows. Both steps of a batch run in the same worker. */
export class PreparePool {
  readonly #threads: readonly PrepareThread[];
  #batch = 0;

  private constructor(threads: readonly PrepareThread[]) {
    this.#threads = threads;
  }

  /** Throws the errors of `openRule`. */
  static async open(setup: WorkerSetup, workers: number): Promise<PreparePool> {
    const threads = Array.from({ length: workers }, () => new PrepareThread(setup));
    try {
      await Promise.all(threads.map((thread) => thread.ready));
    } catch (error) {
      await Promise.all(threads.map((thread) => thread.close()));
      throw error;
    }
    return new PreparePool(threads);
  }

  get workers(): number {
    return this.#threads.length;
  }

  /** Transfers `bytes` to the worker; the caller can no longer use them. */
  split(bytes: Uint8Array<ArrayBuffer>): BatchJob {
    const batch = this.#batch++;
    const thread = this.#threads[batch % this.#threads.length]!;
    const facts = thread.ask({ type: 'split', batch, bytes }, [bytes.buffer]).then((reply) => {
      return (reply as Extract<PrepareReply, { type: 'split' }>).facts;
    });
    // A cancelled run does not await it; avoid an unhandled rejection.
    facts.catch(() => undefined);
    return {
      facts,
      format: (start, header) => {
        const packed = thread.ask({ type: 'format', batch, start, header }).then((reply) => {
          return (reply as Extract<PrepareReply, { type: 'format' }>).bytes;
        });
        packed.catch(() => undefined);
        return packed;
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

class PrepareThread {
  readonly ready: Promise<unknown>;
  readonly #worker: Worker;
  readonly #waiting = new Map<string, Waiting>();

  constructor(setup: WorkerSetup) {
    this.#worker = new Worker(new URL('./prepare-worker.js', import.meta.url), {
      name: 'trawl-prepare',
      workerData: setup,
      execArgv: [],
    });
    this.ready = new Promise((resolve, reject) => this.#waiting.set('ready', { resolve, reject }));
    this.ready.catch(() => undefined);
    this.#worker.on('message', (reply: PrepareReply) => {
      if (reply.type === 'error') this.#fail(deserializeError(reply.error));
      else this.#take(reply.type === 'ready' ? 'ready' : `${reply.type} ${reply.batch}`)?.resolve(reply);
    });
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) => this.#fail(new Error(`A worker thread exited with code ${code}.`)));
  }

  ask(request: PrepareRequest, transfer: readonly ArrayBuffer[] = []): Promise<PrepareReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(`${request.type} ${request.batch}`, { resolve, reject });
      this.#worker.postMessage(request, transfer);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #take(key: string): Waiting | undefined {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    return waiting;
  }

  #fail(error: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
