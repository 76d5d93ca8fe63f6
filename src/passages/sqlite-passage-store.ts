import { Worker } from 'node:worker_threads';
import { throwIfCancelled } from '../abort.ts';
import { deserializeError, TrawlError } from '../errors.ts';
import { checkPassageFile } from './passage-file.ts';
import type { FromPassageWorker, PassageShard, PassageWorkerData, ToPassageWorker } from './passage-protocol.ts';
import type { PassageStore } from './passage-store.ts';

/** Rows per message: a big answer comes in pieces, so that unpacking one never holds the event loop for long. */
const ROWS_PER_MESSAGE = 512;

interface PendingRead {
  resolve(documents: string[]): void;
  reject(error: Error): void;
}

/** Reads passages in a worker thread, so that a cold disk stops nobody but the request that needs it. */
export class SqlitePassageStore implements PassageStore {
  readonly rows: number;
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingRead>();
  #nextId = 0;
  #closing: Promise<void> | undefined;

  private constructor(worker: Worker, rows: number) {
    this.#worker = worker;
    this.rows = rows;
    worker.on('message', (message: FromPassageWorker) => this.#receive(message));
    worker.on('error', (error) => {
      for (const pending of this.#pending.values()) pending.reject(error);
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

  async getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
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
      for (const document of await this.#read(piece)) documents.push(document);
    }
    return documents;
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#worker.ref();
      this.#worker.once('exit', () => resolve());
      this.#send({ type: 'close' });
    });
    return this.#closing;
  }

  #read(rows: Float64Array): Promise<string[]> {
    if (this.#closing !== undefined) throw new TrawlError('NOT_READY', 'The passages are closed.');
    const id = this.#nextId++;
    this.#worker.ref();
    return new Promise<string[]>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ type: 'get', id, rows });
    }).finally(() => {
      this.#pending.delete(id);
      if (this.#pending.size === 0) this.#worker.unref();
    });
  }

  #send(message: ToPassageWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromPassageWorker): void {
    if (message.type === 'ready') return;
    const pending = this.#pending.get(message.id);
    if (message.type === 'documents') pending?.resolve(message.documents);
    else pending?.reject(deserializeError(message.error));
  }
}
