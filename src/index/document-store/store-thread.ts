import { CallThread } from '../../base/system/thread-calls.ts';
import type { StoreCalls } from './store-worker.ts';

/** The thread that parses, checks and stores documents, one request after another. What it has answered is on the disk. */
export class StoreThread {
  readonly #thread = new CallThread<object, unknown>(new URL('./store-worker.js', import.meta.url), {
    name: 'trawl-documents',
  });

  /** @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE; any error if the thread has died: the server must be started again. */
  ask<Name extends keyof StoreCalls>(
    name: Name,
    asked: Parameters<StoreCalls[Name]>[0],
  ): Promise<ReturnType<StoreCalls[Name]>> {
    return this.#thread.ask({ name, asked });
  }

  /** Waits for the requests, then closes the stores. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
