import { Worker } from 'node:worker_threads';
import { throwIfCancelled } from '../abort.ts';
import { bug, deserializeError, TrawlError } from '../errors.ts';
import { checkPassageFile } from './passage-file.ts';
import type { FromPassageWorker, PassageShard, PassageWorkerData, ToPassageWorker } from './passage-protocol.ts';
import type { PassageStore } from './passage-store.ts';
import type { Lookup } from './schema.ts';

/** Rows or keys per message: a big answer comes in pieces, so that unpacking one never holds the event loop for long. */
const ROWS_PER_MESSAGE = 512;

interface PendingRead {
  resolve(answer: string[] | number[][]): void;
  reject(error: Error): void;
}

/** Reads passages in a worker thread, so that a cold disk stops nobody but the request that needs it. */
export class SqlitePassageStore implements PassageStore {
  readonly rows: number;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #running = new Set<Promise<unknown>>();
  readonly #pending = new Map<number, PendingRead>();
  #nextId = 0;
  #closing: Promise<void> | undefined;
  #failure: Error | undefined;

  private constructor(worker: Worker, rows: number) {
    this.#worker = worker;
    this.rows = rows;
    worker.on('message', (message: FromPassageWorker) => this.#receive(message));
    worker.once('error', (error) => this.#fail(error));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (code) => {
        this.#fail(bug(`the passage thread ended with ${code}`));
        resolve();
      });
    });
    worker.unref();
  }

  /** @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED. */
  static async open(shards: readonly PassageShard[]): Promise<SqlitePassageStore> {
    for (const shard of shards) checkPassageFile(shard.path);
    const workerData: PassageWorkerData = { shards };
    const worker = new Worker(new URL('./passage-worker.js', import.meta.url), { workerData });
    await new Promise<void>((resolve, reject) => {
      worker.once('message', () => resolve());
      worker.once('error', reject);
    });
    worker.removeAllListeners('error');
    return new SqlitePassageStore(
      worker,
      shards.reduce((sum, shard) => sum + shard.rows, 0),
    );
  }

  getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    return this.#track(() => this.#getMany(rows, signal));
  }

  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]> {
    return this.#track(() => this.#find(by, keys, limit, signal));
  }

  #track<T>(read: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) return Promise.reject(new TrawlError('NOT_READY', 'The passages are closed.'));
    const running = read();
    const settled = running.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    return running;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all(this.#running);
    this.#worker.ref();
    this.#send({ type: 'close' });
    await this.#exited;
  }

  async #getMany(rows: ArrayLike<number>, signal: AbortSignal | undefined): Promise<string[]> {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (!Number.isInteger(row) || row < 0 || row >= this.rows) {
        throw new RangeError(`Row ${row} is not in [0, ${this.rows}).`);
      }
    }
    const documents: string[] = [];
    for (let start = 0; start < rows.length; start += ROWS_PER_MESSAGE) {
      throwIfCancelled(signal);
      const piece = Float64Array.from(
        { length: Math.min(ROWS_PER_MESSAGE, rows.length - start) },
        (_, i) => rows[start + i]!,
      );
      const id = this.#nextId++;
      for (const document of await this.#ask<string[]>({ type: 'get', id, rows: piece })) documents.push(document);
    }
    return documents;
  }

  async #find(
    by: Lookup,
    keys: readonly string[],
    limit: number,
    signal: AbortSignal | undefined,
  ): Promise<number[][]> {
    const found: number[][] = [];
    for (let start = 0; start < keys.length; start += ROWS_PER_MESSAGE) {
      throwIfCancelled(signal);
      const id = this.#nextId++;
      const piece = keys.slice(start, start + ROWS_PER_MESSAGE);
      for (const rows of await this.#ask<number[][]>({ type: 'find', id, by, keys: piece, limit })) found.push(rows);
    }
    return found;
  }

  async #ask<T extends string[] | number[][]>(message: Exclude<ToPassageWorker, { type: 'close' }>): Promise<T> {
    if (this.#failure !== undefined) throw bug('the passage thread has died', this.#failure);
    this.#worker.ref();
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#pending.set(message.id, { resolve: (answer) => resolve(answer as T), reject });
        this.#send(message);
      });
    } finally {
      this.#pending.delete(message.id);
      if (this.#pending.size === 0) this.#worker.unref();
    }
  }

  #send(message: ToPassageWorker): void {
    this.#worker.postMessage(message);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const pending of this.#pending.values()) pending.reject(bug('the passage thread has died', error));
  }

  #receive(message: FromPassageWorker): void {
    if (message.type === 'ready') return;
    const pending = this.#pending.get(message.id);
    if (message.type === 'documents') pending?.resolve(message.documents);
    else if (message.type === 'found') pending?.resolve(message.rows);
    else pending?.reject(deserializeError(message.error));
  }
}
