import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { CallThread } from '../../base/system/thread-calls.ts';
import { readModelFolder } from '../model/model-folder.ts';
import type { TokenCut } from './cut-tokens.ts';

/** Path of a tokenizer.json: the argument itself, or the file of a model by its name or folder. Throws the errors of `readModelFolder`. */
export async function tokenizerFile(nameOrPath: string): Promise<string> {
  if (nameOrPath.endsWith('.json')) return nameOrPath;
  return (await readModelFolder(nameOrPath, {}, { kind: 'any', checksums: false })).tokenizerPath;
}

export interface CutRequest {
  readonly texts: readonly string[];
  /** Most tokens of each text, special tokens not counted. */
  readonly tokens: number;
}

/** Cuts texts to a number of tokens on its own thread, which starts with the first text. */
export class TokenCutter {
  readonly #findFile: () => Promise<string>;
  /** Undefined until the next call starts a thread. */
  #thread: Promise<CallThread<CutRequest, readonly TokenCut[]>> | undefined;
  #closed = false;

  /** @param findFile the path of the tokenizer's file; called once. Its error rejects every call. */
  constructor(findFile: () => Promise<string>) {
    this.#findFile = findFile;
  }

  /** Cuts each text (`cutTokens`). Throws MODEL_NOT_FOUND or MODEL_INVALID for the tokenizer, CANCELLED after an abort or `close`. */
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
    const onEnd = () => (this.#thread = undefined);
    return new CallThread(new URL('./cut-worker.js', import.meta.url), options, onEnd);
  }
}

function closed(): TrawlError {
  return new TrawlError('CANCELLED', 'The index is being closed. Send the request again.');
}
