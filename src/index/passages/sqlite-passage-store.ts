import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import { CallThread } from '../../base/system/thread-calls.ts';
import { checkPassageFile } from './passage-file.ts';
import type { PassageReply, PassageRequest, PassageShard, ReadKind, ReadValue } from './passage-protocol.ts';
import { PassageBatch, PassageRead } from './passage-read.ts';
import type { PassageStore } from './passage-store.ts';
import type { Lookup } from './schema.ts';

/** Limit of rows or keys per message. Deserialising a larger reply would block the event loop. */
const ITEMS_PER_MESSAGE = 512;
/** Time limit of a message in milliseconds. A row from memory takes microseconds. */
const MESSAGE_MS = 5;
/** Limit of reader threads. They wait for disks, not for cores. */
const MAX_READERS = 4;
/** If every reader has been busy for this long, in milliseconds, another one is started. */
const BLOCKED_MS = 20;
/** Pause before the next attempt when another reader could not be started, in milliseconds. */
const RETRY_MS = 1_000;
/** After this many readers in a row died or failed to start, without a reply in between, no more are started. */
const MAX_DEATHS_IN_A_ROW = 3;
/** A read fails after this many readers died while they worked on it. */
const MAX_DEATHS_OF_A_READ = 2;

/** A reader thread. It gets one message at a time and keeps the process alive only while it works on one. */
interface Reader {
  readonly thread: CallThread<PassageRequest, PassageReply>;
  state: 'opening' | 'idle' | 'busy' | 'ended';
  /** When the current message was sent, by `performance.now()`. */
  busySince: number;
}

/**
 * Reads passages in threads. A message contains an equal share of rows of every waiting read, so that small reads share
 * messages and do not wait for a large one. A reader that blocks on a cold disk returns the rows it had no time for, and
 * another reader reads them, so a slow disk delays only the reads that need it.
 *
 * A reader that dies is replaced, and each of its reads is retried in a message of its own. Only a read that kills another
 * reader fails.
 */
export class SqlitePassageStore implements PassageStore {
  readonly rows: number;
  readonly #shards: readonly PassageShard[];
  readonly #readers: Reader[] = [];
  /** Reads with rows or keys that have not been sent to a reader, in round-robin order. */
  readonly #waiting: PassageRead[] = [];
  /** Reads that are not complete. */
  readonly #running = new Set<PassageRead>();
  #blockedCheck: NodeJS.Timeout | undefined;
  /** Earliest time to start another reader, by `performance.now()`. */
  #nextStartAt = 0;
  readonly #calls = new RunningCalls('The passages are closed.');
  /** Whether no read runs any more, and none will. */
  #isClosed = false;
  #deathsInARow = 0;
  #failure: Error | undefined;

  private constructor(shards: readonly PassageShard[]) {
    this.#shards = shards;
    this.rows = shards.reduce((sum, shard) => sum + shard.rows, 0);
  }

  /** @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED. */
  static async open(shards: readonly PassageShard[]): Promise<SqlitePassageStore> {
    for (const shard of shards) checkPassageFile(shard.path);
    const store = new SqlitePassageStore(shards);
    await store.#startReader();
    return store;
  }

  getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    return this.#readRows('document', rows, signal);
  }

  idsOf(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    return this.#readRows('id', rows, signal);
  }

  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]> {
    return this.#read({ by, limit }, keys, signal);
  }

  get failure(): TrawlError | undefined {
    return this.#failure === undefined ? undefined : cannotRead(this.#failure);
  }

  async #readRows(
    kind: 'document' | 'id',
    rows: ArrayLike<number>,
    signal: AbortSignal | undefined,
  ): Promise<string[]> {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (!Number.isInteger(row) || row < 0 || row >= this.rows) {
        throw new RangeError(`Row ${row} is not in [0, ${this.rows}).`);
      }
    }
    return this.#read(kind, rows, signal);
  }

  #read<Value extends ReadValue>(
    kind: ReadKind,
    items: ArrayLike<number | string>,
    signal: AbortSignal | undefined,
  ): Promise<Value[]> {
    return this.#calls.run(async () => {
      const { failure } = this;
      if (failure !== undefined) throw failure;
      const read = new PassageRead(kind, items, signal);
      this.#running.add(read);
      if (read.hasWork) this.#waiting.push(read);
      this.#dispatch();
      try {
        return (await read.result) as Value[];
      } finally {
        this.#running.delete(read);
      }
    });
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      this.#isClosed = true;
      clearTimeout(this.#blockedCheck);
      // A reader that still works for a cancelled read closes afterwards.
      await Promise.all(this.#readers.map(({ thread }) => thread.close()));
    });
  }

  async #startReader(): Promise<void> {
    const options = { name: 'trawl-passages', workerData: this.#shards };
    const thread = new CallThread<PassageRequest, PassageReply>(
      new URL('./passage-worker.js', import.meta.url),
      options,
      (error) => {
        const wasOpen = reader.state !== 'opening';
        reader.state = 'ended';
        this.#readers.splice(this.#readers.indexOf(reader), 1);
        // Later, once `#ask` has put back the items of the reader's message.
        if (wasOpen) queueMicrotask(() => this.#replace(error));
      },
    );
    const reader: Reader = { thread, state: 'opening', busySince: 0 };
    this.#readers.push(reader);
    await thread.opened();
    reader.state = 'idle';
  }

  /** Replaces a reader that died or could not be started. */
  #replace(error: Error): void {
    if (this.#isClosed) return;
    if (++this.#deathsInARow < MAX_DEATHS_IN_A_ROW) {
      this.#startReader().then(
        () => this.#dispatch(),
        (startError: Error) => this.#replace(startError),
      );
    } else if (this.#readers.length === 0) this.#fail(error);
    this.#dispatch();
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const reader = this.#readers.find(({ state }) => state === 'idle');
      if (reader === undefined) {
        this.#checkBlocked();
        return;
      }
      const batch = PassageBatch.take(this.#waiting, ITEMS_PER_MESSAGE);
      const request = batch.request(MESSAGE_MS);
      if (request !== undefined) void this.#ask(reader, batch, request);
    }
  }

  async #ask(reader: Reader, batch: PassageBatch, request: PassageRequest): Promise<void> {
    reader.state = 'busy';
    reader.busySince = performance.now();
    try {
      batch.accept(await reader.thread.ask(request));
    } catch (error) {
      const isDead = !this.#readers.includes(reader);
      if (isDead) batch.requeue();
      for (const read of batch.reads) {
        if (!isDead) read.fail(error);
        else if (++read.deaths >= MAX_DEATHS_OF_A_READ) read.fail(diedReading(error as Error));
      }
    }
    if (this.#readers.includes(reader)) {
      reader.state = 'idle';
      this.#deathsInARow = 0;
    }
    this.#waiting.push(...batch.reads.filter(({ hasWork }) => hasWork));
    this.#dispatch();
  }

  /** Starts another reader if all readers are still blocked by the disk after a while. */
  #checkBlocked(): void {
    if (this.#blockedCheck !== undefined || this.#readers.length === MAX_READERS) return;
    if (performance.now() < this.#nextStartAt) return;
    this.#blockedCheck = setTimeout(() => {
      this.#blockedCheck = undefined;
      if (this.#isClosed || this.#failure !== undefined || this.#waiting.length === 0) return;
      const since = performance.now() - BLOCKED_MS;
      if (!this.#readers.every(({ state, busySince }) => state === 'busy' && busySince <= since))
        return this.#dispatch();
      // Starting fails if the files were renamed or removed; the existing readers still have them open.
      this.#startReader().then(
        () => this.#dispatch(),
        () => {
          this.#nextStartAt = performance.now() + RETRY_MS;
          this.#dispatch();
        },
      );
    }, BLOCKED_MS);
    this.#blockedCheck.unref();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#waiting.splice(0);
    for (const read of this.#running) read.fail(cannotRead(error));
  }
}

function diedReading(cause: Error): TrawlError {
  return new TrawlError(
    'INTERNAL',
    `${MAX_DEATHS_OF_A_READ} reader threads died while reading these passages: ${cause.message} Try again; if that fails, too, ` +
      'run trawl verify.',
    { cause },
  );
}

function cannotRead(cause: Error): TrawlError {
  return new TrawlError(
    'INTERNAL',
    `Passages can no longer be read: ${cause.message} Reload the index (SIGHUP, or its reload route) or restart the server.`,
    { cause },
  );
}
