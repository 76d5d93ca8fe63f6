import { Worker } from 'node:worker_threads';
import { cancelled, throwIfCancelled } from '../../base/abort.ts';
import { asTrawlError, deserializeError, TrawlError } from '../../base/errors.ts';
import { readModelFolder } from '../model/model-folder.ts';
import type { CutWorkerSetup, FromCutWorker, ToCutWorker } from './cut-messages.ts';
import type { TokenCut } from './cut-tokens.ts';

/** The file of a tokenizer: a `tokenizer.json` by its path, or a model's by the model's name or folder. Errors as of `readModelFolder`. */
export async function tokenizerFile(nameOrPath: string): Promise<string> {
  if (nameOrPath.endsWith('.json')) return nameOrPath;
  return (await readModelFolder(nameOrPath, {}, { kind: 'any', checksums: false })).tokenizerPath;
}

interface Waiting {
  resolve(cuts: readonly TokenCut[]): void;
  reject(error: TrawlError): void;
}

/** Cuts texts to a number of tokens, on a thread of its own, which starts with the first text. */
export class TokenCutter {
  readonly #findFile: () => Promise<string>;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Promise<Worker> | undefined;
  #nextId = 0;
  #closed = false;

  /** @param findFile the path of the tokenizer's file; called once. Its error rejects every call. */
  constructor(findFile: () => Promise<string>) {
    this.#findFile = findFile;
  }

  /**
   * The beginning of each text with at most `tokens` tokens (`cutTokens`).
   *
   * @throws TrawlError MODEL_NOT_FOUND or MODEL_INVALID if the tokenizer cannot be used, CANCELLED after an abort or `close`.
   */
  async cut(texts: readonly string[], tokens: number, signal?: AbortSignal): Promise<readonly TokenCut[]> {
    throwIfCancelled(signal);
    if (this.#closed) throw closed();
    this.#worker ??= this.#start();
    const worker = await this.#worker;
    throwIfCancelled(signal);
    if (this.#closed) throw closed();
    const id = this.#nextId++;
    let onAbort = (): void => undefined;
    const cuts = new Promise<readonly TokenCut[]>((resolve, reject) => {
      onAbort = () => reject(cancelled());
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.set(id, { resolve, reject });
      // Only a thread with work keeps the process alive.
      worker.ref();
      worker.postMessage({ id, texts, tokens } satisfies ToCutWorker);
    });
    try {
      return await cuts;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Rejects waiting calls and ends the thread. Safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = await this.#worker?.catch(() => undefined);
    await worker?.terminate();
    this.#failAll(closed());
  }

  async #start(): Promise<Worker> {
    const workerData: CutWorkerSetup = { tokenizerPath: await this.#findFile() };
    const worker = new Worker(new URL('./cut-worker.js', import.meta.url), { name: 'trawl-cutter', workerData });
    worker.unref();
    worker.on('message', (message: FromCutWorker) => {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (this.#waiting.size === 0) worker.unref();
      if ('cuts' in message) waiting?.resolve(message.cuts);
      else waiting?.reject(deserializeError(message.error));
    });
    worker.once('error', (error) => {
      // The next call starts another thread.
      this.#worker = undefined;
      this.#failAll(asTrawlError(error));
    });
    return worker;
  }

  #failAll(error: TrawlError): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

function closed(): TrawlError {
  return new TrawlError('CANCELLED', 'The index is being closed. Send the request again.');
}
