import { Worker } from 'node:worker_threads';

import { deserializeError } from '../src/errors.ts';
import type { BatchFacts, PrepareReply, PrepareRequest, WorkerSetup } from './prepare-messages.ts';

interface Waiting {
  resolve(reply: PrepareReply): void;
  reject(error: unknown): void;
}

/** One batch of lines in a worker. */
export interface BatchJob {
  readonly facts: Promise<BatchFacts>;
  /** The batch's rows, packed. `start`: how many passages come before it. To be called once, after `facts`. */
  format(start: number, header: boolean): Promise<Uint8Array>;
}

/** Worker threads that split documents and write rows; a batch stays with its worker. */
export class PreparePool {
  readonly #threads: readonly PrepareThread[];
  #batch = 0;

  private constructor(threads: readonly PrepareThread[]) {
    this.#threads = threads;
  }

  /** Errors: those of `openRule`. */
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

  /** The bytes are given away. */
  split(bytes: Uint8Array<ArrayBuffer>): BatchJob {
    const batch = this.#batch++;
    const thread = this.#threads[batch % this.#threads.length]!;
    const facts = thread.ask({ kind: 'split', batch, bytes }, [bytes.buffer]).then((reply) => {
      return (reply as Extract<PrepareReply, { kind: 'split' }>).facts;
    });
    // Whoever stops early leaves it unread.
    facts.catch(() => undefined);
    return {
      facts,
      format: (start, header) => {
        const packed = thread.ask({ kind: 'format', batch, start, header }).then((reply) => {
          return (reply as Extract<PrepareReply, { kind: 'format' }>).bytes;
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
      if (reply.kind === 'error') this.#fail(deserializeError(reply.error));
      else this.#take(reply.kind === 'ready' ? 'ready' : `${reply.kind} ${reply.batch}`)?.resolve(reply);
    });
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', (code) => this.#fail(new Error(`a worker thread ended with ${code}`)));
  }

  ask(request: PrepareRequest, transfer: readonly ArrayBuffer[] = []): Promise<PrepareReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(`${request.kind} ${request.batch}`, { resolve, reject });
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
