import { cancelled } from '../../src/base/abort.ts';
import { CallThread } from '../../src/base/system/thread-calls.ts';
import type { BatchFacts, PrepareRequest, WorkerSetup } from './prepare-messages.ts';

type PrepareThread = CallThread<PrepareRequest, BatchFacts | Uint8Array>;

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
    const options = { name: 'trawl-prepare', workerData: setup, execArgv: [] };
    const file = new URL('./prepare-worker.js', import.meta.url);
    const pool = new PreparePool(Array.from({ length: workers }, () => new CallThread(file, options)));
    try {
      await Promise.all(pool.#threads.map((thread) => thread.opened()));
    } catch (error) {
      await pool.close();
      throw error;
    }
    return pool;
  }

  get workers(): number {
    return this.#threads.length;
  }

  /** Transfers `bytes` to the worker; the caller can no longer use them. */
  split(bytes: Uint8Array<ArrayBuffer>): BatchJob {
    const batch = this.#batch++;
    const thread = this.#threads[batch % this.#threads.length]!;
    const facts = thread.ask<BatchFacts>({ type: 'split', batch, bytes }, [bytes.buffer]);
    // A cancelled run does not await it; avoid an unhandled rejection.
    facts.catch(() => undefined);
    return {
      facts,
      format: (start, header) => {
        const packed = thread.ask<Uint8Array>({ type: 'format', batch, start, header });
        packed.catch(() => undefined);
        return packed;
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate(cancelled())));
  }
}
