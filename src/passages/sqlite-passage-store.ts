import { bug, deserializeError, TrawlError } from '../errors.ts';
import { checkPassageFile } from './passage-file.ts';
import type { PassageShard } from './passage-protocol.ts';
import { DocumentsRead, FindRead } from './passage-read.ts';
import { PassageReader, type PassageReply } from './passage-reader.ts';
import type { PassageStore } from './passage-store.ts';
import type { Lookup } from './schema.ts';

/** Rows or keys per message: a big answer comes in pieces, so that unpacking one never holds the event loop for long. */
const ROWS_PER_MESSAGE = 512;
/** What a message may take before the reader gives back what it has not read; a row from memory takes microseconds. */
const MESSAGE_MS = 5;
/** Most reader threads. They wait for disks, not for cores. */
const MOST_READERS = 4;
/** When all readers have been held up for so long, one more is started. */
const HELD_UP_MS = 20;
/** Until the next try, where a further reader could not open the files. */
const NO_RELIEF_MS = 1_000;
/** Readers that died, or could not be started, without an answer between them, after which no other is started. */
const MAX_DEATHS_IN_A_ROW = 3;
/** A read that so many readers died with is not asked for again. */
const MAX_DEATHS_OF_A_READ = 2;

/**
 * Reads passages in threads. A message has rows of all reads that wait, in turn, so that small reads meet and a big one
 * does not hold up the others. Where a row comes from a cold disk, the reader gives back what it had no time for, and
 * another reader takes that: so the disk is felt by the read that needs it.
 *
 * A reader that dies is replaced, and what it had is asked for again, each read by itself: so only the one that kills again
 * fails.
 */
export class SqlitePassageStore implements PassageStore {
  readonly rows: number;
  readonly #shards: readonly PassageShard[];
  readonly #readers: PassageReader[] = [];
  /** Reads with rows that no reader has; the first gives the next ones. */
  readonly #waiting: (DocumentsRead | FindRead)[] = [];
  /** Those that have no answer yet. */
  readonly #running = new Set<DocumentsRead | FindRead>();
  #whenIdle: (() => void) | undefined;
  #relief: NodeJS.Timeout | undefined;
  /** On the clock of `performance.now()`. */
  #noReliefUntil = 0;
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
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (!Number.isInteger(row) || row < 0 || row >= this.rows) {
        return Promise.reject(new RangeError(`Row ${row} is not in [0, ${this.rows}).`));
      }
    }
    const refusal = this.#refusal;
    if (refusal !== undefined) return Promise.reject(refusal);
    const read = new DocumentsRead(rows, signal);
    return this.#begin(read, read.result);
  }

  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]> {
    const refusal = this.#refusal;
    if (refusal !== undefined) return Promise.reject(refusal);
    const read = new FindRead({ by, keys, limit }, signal);
    return this.#begin(read, read.result);
  }

  /** What keeps every read from its answer, until the index is opened anew. */
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
    clearTimeout(this.#relief);
    // A reader that has a message for nobody any more ends after it.
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

  /** A reader less, or one that could not be started. */
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

  /** A read whose reader has died with something of it. */
  #askAgain(read: DocumentsRead | FindRead, error: Error): void {
    if (++read.deaths >= MAX_DEATHS_OF_A_READ) read.fail(diedReading(error));
    else if (read.hasWork) this.#waiting.push(read);
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const reader = this.#readers.find(({ isIdle }) => isIdle);
      if (reader === undefined) {
        this.#callRelief();
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
      onLost: (error) => {
        read.giveBack();
        this.#askAgain(read, error);
      },
    });
  }

  /** Rows of the reads that wait, the same share of each as long as there is room. */
  #askDocuments(reader: PassageReader): void {
    const share = Math.max(1, Math.floor(ROWS_PER_MESSAGE / this.#waiting.length));
    const pieces: { read: DocumentsRead; places: number[] }[] = [];
    let left = ROWS_PER_MESSAGE;
    while (left > 0 && this.#waiting[0] instanceof DocumentsRead) {
      const isSuspect = this.#waiting[0].deaths > 0;
      if (isSuspect && pieces.length > 0) break;
      // In no two messages at once, so that one read never holds up several readers.
      const read = this.#waiting.shift() as DocumentsRead;
      if (!read.hasWork) continue;
      // The last one may have what is left.
      const most = this.#waiting.length === 0 ? left : Math.min(left, share);
      const places = read.take(most);
      left -= places.length;
      pieces.push({ read, places });
      if (isSuspect) break;
    }
    if (pieces.length === 0) return;
    const rows = Float64Array.from(pieces.flatMap(({ read, places }) => places.map((place) => read.row(place))));
    reader.ask(
      { type: 'get', rows, budgetMs: MESSAGE_MS },
      {
        onReply: (reply) => {
          this.#deathsInARow = 0;
          for (const error of acceptDocuments(pieces, reply)) this.#fail(error);
          for (const { read } of pieces) if (read.hasWork) this.#waiting.push(read);
          this.#dispatch();
        },
        onLost: (error) => {
          for (const { read, places } of pieces) {
            read.giveBack(places);
            this.#askAgain(read, error);
          }
        },
      },
    );
  }

  /** Looks a little later whether the readers are held up by a disk. */
  #callRelief(): void {
    if (this.#relief !== undefined || this.#readers.length === MOST_READERS) return;
    if (performance.now() < this.#noReliefUntil) return;
    this.#relief = setTimeout(() => {
      this.#relief = undefined;
      if (this.#closing !== undefined || this.#failure !== undefined || this.#waiting.length === 0) return;
      if (!this.#readers.every(({ busyMs }) => busyMs >= HELD_UP_MS)) return this.#dispatch();
      // Those that are there go on where no other can be had (the files are open, but renamed or removed).
      this.#startReader().then(
        () => this.#dispatch(),
        () => {
          this.#noReliefUntil = performance.now() + NO_RELIEF_MS;
          this.#dispatch();
        },
      );
    }, HELD_UP_MS);
    this.#relief.unref();
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
    `The thread that read these passages has died, and another one too: ${cause.message}`,
    {
      cause,
    },
  );
}

function cannotRead(cause: Error): TrawlError {
  return new TrawlError(
    'INTERNAL',
    `The passages cannot be read any more: ${cause.message} Open the index anew (SIGHUP, or its reload route), or start the server again.`,
    { cause },
  );
}

/** Gives each read its documents; yields what must not happen. */
function* acceptDocuments(
  pieces: readonly { readonly read: DocumentsRead; readonly places: readonly number[] }[],
  reply: PassageReply,
): Generator<Error> {
  if (reply.type === 'failed') {
    for (const { read } of pieces) read.fail(deserializeError(reply.error));
    return;
  }
  if (reply.type === 'found') {
    yield bug('a passage thread answered a question it was not asked');
    return;
  }
  const failures = new Map(reply.failures.map(({ index, error }) => [index, error]));
  let at = 0;
  for (const { read, places } of pieces) {
    for (const place of places) {
      const failure = failures.size === 0 ? undefined : failures.get(at);
      if (failure === undefined) read.accept(place, reply.documents[at]!);
      else read.fail(deserializeError(failure));
      at++;
    }
  }
}
