import { cancelled } from '../../src/base/abort.ts';
import type { Compression } from '../../src/base/files/compression.ts';
import { CallThread } from '../../src/base/system/thread-calls.ts';
import type { RowOptions } from './format-rows.ts';
import type { RuleOptions } from './open-rule.ts';

export interface WorkerSetup {
  readonly rule: RuleOptions;
  readonly row: RowOptions;
  readonly compression: Compression;
}

/** An invalid line; `line` is its number in the batch, from 0. */
export interface BadLine {
  readonly line: number;
  readonly reason: string;
}

export interface BatchFacts {
  readonly documents: number;
  readonly emptyDocuments: number;
  readonly passages: number;
  readonly bad: readonly BadLine[];
}

/**
 * `split` splits the documents of a batch; the answer is its `BatchFacts`. `format` then formats its rows, and the answer is their
 * bytes; `start` is the number of passages in all batches before it.
 */
export type PrepareRequest =
  | { readonly type: 'split'; readonly batch: number; readonly bytes: Uint8Array }
  | { readonly type: 'format'; readonly batch: number; readonly start: number; readonly header: boolean };

type PrepareThread = CallThread<PrepareRequest, BatchFacts | Uint8Array>;

export interface BatchJob {
  readonly facts: Promise<BatchFacts>;
  /** Formats and compresses the rows. `start`: number of passages before the batch. Call once, after `facts` resolved. */
  format(start: number, header: boolean): Promise<Uint8Array>;
}

export type PreparePool = Awaited<ReturnType<typeof openPreparePool>>;

/** Starts worker threads that split documents and format rows. Throws the errors of `openRule`. */
export async function openPreparePool(setup: WorkerSetup, workers: number) {
  const options = { name: 'trawl-prepare', workerData: setup, execArgv: [] };
  const file = new URL('./prepare-worker.js', import.meta.url);
  const threads: PrepareThread[] = Array.from({ length: workers }, () => new CallThread(file, options));
  const close = async (): Promise<void> => {
    await Promise.all(threads.map((thread) => thread.terminate(cancelled())));
  };
  try {
    await Promise.all(threads.map((thread) => thread.opened()));
  } catch (error) {
    await close();
    throw error;
  }
  let batches = 0;
  return {
    workers,
    close,
    /** Both steps of a batch run in the same worker. Transfers `bytes` to it; the caller can no longer use them. */
    split(bytes: Uint8Array<ArrayBuffer>): BatchJob {
      const batch = batches++;
      const thread = threads[batch % workers]!;
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
    },
  };
}
