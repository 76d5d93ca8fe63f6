import { CallThread } from '../../base/system/thread-calls.ts';
import type { StoreCall, StoreRequests } from './store-protocol.ts';

/** The thread that parses, checks and stores documents, one request after another. What it has answered is on the disk. */
export class StoreThread {
  readonly #thread = new CallThread<StoreCall, unknown>(new URL('./store-worker.js', import.meta.url), {
    name: 'trawl-documents',
  });

  /** @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE; any error if the thread has died: the server must be started again. */
  ask<Name extends keyof StoreRequests>(
    name: Name,
    asked: StoreRequests[Name]['asked'],
  ): Promise<StoreRequests[Name]['answer']> {
    return this.#thread.ask({ name, asked } as StoreCall);
  }

  /** Waits for the requests, then closes the stores. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
