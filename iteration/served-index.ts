import { setTimeout as sleep } from 'node:timers/promises';
import { TrawlClient } from '../src/client/client.ts';
import { TrawlConnectionError, TrawlResponseError } from '../src/client/errors.ts';
import { TrawlError } from '../src/errors.ts';

export interface ServerOptions {
  /** Key with the scope admin. */
  readonly apiKey?: string | undefined;
  /** The folder that the server opens. Default: the one that it was started with. */
  readonly folder?: string | undefined;
}

/** Milliseconds between two questions whether a reload has ended. */
const POLL_MS = 200;

/** An index of a running server that is reloaded. */
export class ServedIndex {
  /** As given, for messages. */
  readonly url: string;
  readonly #base: string;
  /** Undefined: the only index of the server. */
  readonly #name: string | undefined;
  readonly #options: ServerOptions;
  readonly #client: TrawlClient;

  /** @param url of the server; with several indexes that of one of them: `http://host:8000/indexes/NAME`. */
  constructor(url: string, options: ServerOptions = {}) {
    this.url = url;
    const [, base, name] = /^(https?:\/\/.+?)(?:\/indexes\/([^/]+))?\/*$/.exec(url) ?? [];
    if (base === undefined) {
      throw new TrawlError(
        'USAGE',
        `--server is ${JSON.stringify(url)}; expected http://HOST:PORT or http://HOST:PORT/indexes/NAME.`,
      );
    }
    this.#base = base;
    this.#name = name;
    this.#options = options;
    const { apiKey } = options;
    this.#client = new TrawlClient(base, { retry: { attempts: 3 }, ...(apiKey === undefined ? {} : { apiKey }) });
  }

  /** Name and generation of the index. @throws TrawlError CONFIG_INVALID if the server cannot be asked or does not have it. */
  async facts(signal?: AbortSignal): Promise<{ readonly name: string; readonly generation: string }> {
    let indexes: readonly { readonly name: string; readonly generation: string }[];
    try {
      indexes = await this.#client.indexes(signal === undefined ? {} : { signal });
    } catch (error) {
      if (!(error instanceof TrawlResponseError || error instanceof TrawlConnectionError)) throw error;
      throw new TrawlError('CONFIG_INVALID', `${this.url} cannot be asked for its indexes: ${error.message}`, {
        cause: error,
      });
    }
    const found = this.#name === undefined ? indexes : indexes.filter(({ name }) => name === this.#name);
    if (found.length === 1) return found[0]!;
    const names = indexes.map(({ name }) => name).join(', ') || 'none';
    throw new TrawlError(
      'CONFIG_INVALID',
      this.#name === undefined
        ? `${this.url} serves the indexes ${names}. Name one: --server ${this.#base}/indexes/NAME.`
        : `${this.url} does not serve ${this.#name}. It serves ${names}.`,
    );
  }

  /**
   * Reloads the index and checks that the server then answers with `generation`. Does nothing if it already does.
   *
   * @throws TrawlError RELOAD_FAILED: the server keeps the index that it had, or answers with another one.
   */
  async swapTo(generation: string): Promise<void> {
    const before = await this.facts();
    if (before.generation === generation) return;
    await this.#reload(before.name, generation);
    const after = await this.facts();
    if (after.generation === generation) return;
    throw new TrawlError(
      'RELOAD_FAILED',
      `${this.url} answers with generation ${after.generation} after the reload, not with ${generation}: it does not open the ` +
        'link `current` of --root. Start it with that path, or name the path as the server sees it with --server-folder.',
      { details: { url: this.url, generation: after.generation, expected: generation } },
    );
  }

  async #reload(name: string, generation: string): Promise<void> {
    const { apiKey, folder } = this.#options;
    let response: Response;
    try {
      response = await fetch(`${this.#base}/admin/indexes/${encodeURIComponent(name)}/reload`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        body: JSON.stringify(folder === undefined ? {} : { folder }),
      });
    } catch (error) {
      return this.#awaitReload(name, generation, error);
    }
    const text = await response.text().catch(() => '');
    if (response.ok) return;
    throw new TrawlError(
      'RELOAD_FAILED',
      `${this.url} refused the reload with status ${response.status}: ${reasonOf(text)}`,
      {
        details: { url: this.url, status: response.status },
      },
    );
  }

  /** A reload of a large index can take longer than `fetch` waits for a reply; the server goes through with it. */
  async #awaitReload(name: string, generation: string, cause: unknown): Promise<void> {
    while (await this.#isOpening(name)) await sleep(POLL_MS);
    const { generation: found } = await this.facts();
    if (found === generation) return;
    throw new TrawlError(
      'RELOAD_FAILED',
      `${this.url} was lost during the reload (${(cause as Error).message}) and answers with generation ${found}.`,
      { cause },
    );
  }

  /** Whether the server is opening the index. False if it does not say, or does not answer. */
  async #isOpening(name: string): Promise<boolean> {
    const readiness = await this.#client.ready().catch(() => undefined);
    const indexes = readiness?.facts.indexes;
    if (!Array.isArray(indexes)) return false;
    const index = (indexes as { name: unknown; stage: unknown }[]).find((each) => each.name === name);
    return typeof index?.stage === 'string' && index.stage !== 'ready' && index.stage !== 'failed';
  }
}

function reasonOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    if (typeof error?.message === 'string') return error.message;
  } catch {
    // A proxy, for example, answers in HTML.
  }
  return text.slice(0, 200) || 'no reason given.';
}
