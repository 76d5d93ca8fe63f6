import { TrawlError } from '../../base/errors.ts';
import { takeBatch } from './document-batch.ts';
import { checkPassageFile } from './passage-file-header.ts';
import type { PassageShard, RowContent } from './passage-protocol.ts';
import { DocumentsRead, FindRead } from './passage-read.ts';
import { PassageReader } from './passage-reader.ts';
import type { PassageStore } from './passage-store.ts';
import type { Lookup } from './schema.ts';

/** Limit of rows or keys per message. Deserialising a larger reply would block the event loop. */
const ROWS_PER_MESSAGE = 512;
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
  readonly #readers: PassageReader[] = [];
  /** Reads with rows or keys that have not been sent to a reader, in round-robin order. */
  readonly #waiting: (DocumentsRead | FindRead)[] = [];
  /** Reads that are not complete. */
  readonly #running = new Set<DocumentsRead | FindRead>();
  #whenIdle: (() => void) | undefined;
  #blockedCheck: NodeJS.Timeout | undefined;
  /** Earliest time to start another reader, by `performance.now()`. */
  #nextStartAt = 0;
  #closing: Promise<void> | undefined;
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
    return this.#get('document', rows, signal);
  }

  idsOf(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    return this.#get('id', rows, signal);
  }

  #get(what: RowContent, rows: ArrayLike<number>, signal: AbortSignal | undefined): Promise<string[]> {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (!Number.isInteger(row) || row < 0 || row >= this.rows) {
        return Promise.reject(new RangeError(`Row ${row} is not in [0, ${this.rows}).`));
      }
    }
    const refusal = this.#refusal;
    if (refusal !== undefined) return Promise.reject(refusal);
    const read = new DocumentsRead(what, rows, signal);
    return this.#begin(read, read.result);
  }

  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]> {
    const refusal = this.#refusal;
    if (refusal !== undefined) return Promise.reject(refusal);
    const read = new FindRead({ by, keys, limit }, signal);
    return this.#begin(read, read.result);
  }

  get failure(): TrawlError | undefined {
    return this.#failure === undefined ? undefined : cannotRead(this.#failure);
  }

  get #refusal(): TrawlError | undefined {
    if (this.#closing !== undefined) return new TrawlError('NOT_READY', 'The passages are closed.');
    return this.failure;
  }

  #begin<T>(read: DocumentsRead | FindRead, result: Promise<T>): Promise<T> {
    const over = (): void => {
      this.#running.delete(read);
      if (this.#running.size === 0) this.#whenIdle?.();
    };
    this.#running.add(read);
    result.then(over, over);
    if (read.hasWork) this.#waiting.push(read);
    this.#dispatch();
    return result;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    clearTimeout(this.#blockedCheck);
    // A reader that still works for a cancelled read closes afterwards.
    await Promise.all(this.#readers.map((reader) => reader.close()));
  }

  async #startReader(): Promise<void> {
    const reader = new PassageReader(this.#shards, (error) => {
      this.#remove(reader);
      this.#replace(error);
    });
    this.#readers.push(reader);
    try {
      await reader.ready;
    } catch (error) {
      this.#remove(reader);
      throw error;
    }
  }

  #remove(reader: PassageReader): void {
    const place = this.#readers.indexOf(reader);
    if (place >= 0) this.#readers.splice(place, 1);
  }

  /** Replaces a reader that died or could not be started. */
  #replace(error: Error): void {
    if (this.#closing !== undefined && this.#running.size === 0) return;
    if (++this.#deathsInARow < MAX_DEATHS_IN_A_ROW) {
      this.#startReader().then(
        () => this.#dispatch(),
        (startError: Error) => this.#replace(startError),
      );
    } else if (this.#readers.length === 0) this.#fail(error);
    this.#dispatch();
  }

  /** Retries a read whose reader died. */
  #retry(read: DocumentsRead | FindRead, error: Error): void {
    if (++read.deaths >= MAX_DEATHS_OF_A_READ) read.fail(diedReading(error));
    else if (read.hasWork) this.#waiting.push(read);
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const reader = this.#readers.find(({ isIdle }) => isIdle);
      if (reader === undefined) {
        this.#checkBlocked();
        return;
      }
      const first = this.#waiting[0]!;
      if (!first.hasWork) this.#waiting.shift();
      else if (first instanceof FindRead) this.#askFind(reader, first);
      else this.#askDocuments(reader);
    }
  }

  #askFind(reader: PassageReader, read: FindRead): void {
    this.#waiting.shift();
    reader.ask(read.message(ROWS_PER_MESSAGE), {
      onReply: (reply) => {
        this.#deathsInARow = 0;
        read.accept(reply);
        if (read.hasWork) this.#waiting.push(read);
        this.#dispatch();
      },
      onDeath: (error) => {
        read.requeue();
        this.#retry(read, error);
      },
    });
  }

  #askDocuments(reader: PassageReader): void {
    const batch = takeBatch(this.#waiting, ROWS_PER_MESSAGE);
    if (batch === undefined) return;
    reader.ask(batch.message(MESSAGE_MS), {
      onReply: (reply) => {
        this.#deathsInARow = 0;
        const error = batch.accept(reply);
        if (error !== undefined) this.#fail(error);
        for (const read of batch.reads) if (read.hasWork) this.#waiting.push(read);
        this.#dispatch();
      },
      onDeath: (error) => {
        batch.requeue();
        for (const read of batch.reads) this.#retry(read, error);
      },
    });
  }

  /** Starts another reader if all readers are still blocked by the disk after a while. */
  #checkBlocked(): void {
    if (this.#blockedCheck !== undefined || this.#readers.length === MAX_READERS) return;
    if (performance.now() < this.#nextStartAt) return;
    this.#blockedCheck = setTimeout(() => {
      this.#blockedCheck = undefined;
      if (this.#closing !== undefined || this.#failure !== undefined || this.#waiting.length === 0) return;
      if (!this.#readers.every(({ busyMs }) => busyMs >= BLOCKED_MS)) return this.#dispatch();
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
