import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { CallThread } from '../../base/system/thread-calls.ts';
import { readModelFolder } from '../model/model-folder.ts';
import type { TokenCut } from './cut-tokens.ts';

/** The file of a tokenizer: a `tokenizer.json` by its path, or a model's by the model's name or folder. Errors as of `readModelFolder`. */
export async function tokenizerFile(nameOrPath: string): Promise<string> {
  if (nameOrPath.endsWith('.json')) return nameOrPath;
  return (await readModelFolder(nameOrPath, {}, { kind: 'any', checksums: false })).tokenizerPath;
}

export interface CutRequest {
  readonly texts: readonly string[];
  /** Most tokens of each text, special tokens not counted. */
  readonly tokens: number;
}

/** Cuts texts to a number of tokens, on a thread of its own, which starts with the first text. */
export class TokenCutter {
  readonly #findFile: () => Promise<string>;
  #thread: Promise<CallThread<CutRequest, readonly TokenCut[]>> | undefined;
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
    this.#thread ??= this.#start();
    const thread = await this.#thread;
    throwIfCancelled(signal);
    if (this.#closed) throw closed();
    return untilAborted(thread.ask({ texts, tokens }), signal);
  }

  /** Rejects waiting calls and ends the thread. Safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true;
    const thread = await this.#thread?.catch(() => undefined);
    await thread?.terminate(closed());
  }

  async #start(): Promise<CallThread<CutRequest, readonly TokenCut[]>> {
    const options = { name: 'trawl-cutter', workerData: await this.#findFile() };
    return new CallThread(new URL('./cut-worker.js', import.meta.url), options, () => {
      // The next call starts another thread.
      this.#thread = undefined;
    });
  }
}

function closed(): TrawlError {
  return new TrawlError('CANCELLED', 'The index is being closed. Send the request again.');
}
