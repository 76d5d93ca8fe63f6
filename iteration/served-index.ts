import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../src/abort.ts';
import { TrawlClient } from '../src/client/client.ts';
import { TrawlConnectionError, TrawlResponseError } from '../src/client/errors.ts';
import { TrawlError } from '../src/errors.ts';

export interface ServerOptions {
  /** Key with the scope admin. */
  readonly apiKey?: string | undefined;
  /** The folder that the server opens. Default: the one that it was started with. */
  readonly folder?: string | undefined;
  /** Longest wait for a server that opens an index, in milliseconds. Default: 30 minutes. */
  readonly openingMs?: number | undefined;
}

/** Milliseconds between two questions whether a reload has ended. */
const POLL_MS = 200;
const OPENING_MS = 30 * 60_000;

/** No path: a reload with it is refused, after the key was checked. */
const REFUSED_FOLDER = '\0';

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
    if (url.includes(',')) {
      throw new TrawlError('USAGE', `--server is ${JSON.stringify(url)}. Repeat the option for several servers.`);
    }
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
   * Checks that the server lets this client reload the index, without doing it: asks for a reload that cannot be meant.
   *
   * @throws TrawlError CONFIG_INVALID if not.
   */
  async checkReload(name: string, signal?: AbortSignal): Promise<void> {
    const { status, body } = await this.#post(name, REFUSED_FOLDER, signal).catch((cause: unknown) => {
      throwIfCancelled(signal);
      throw new TrawlError('CONFIG_INVALID', `${this.url} was lost: ${(cause as Error).message}.`, { cause });
    });
    await body?.cancel();
    if (status !== 401 && status !== 403 && status !== 404) return;
    throw new TrawlError(
      'CONFIG_INVALID',
      `${this.url} would refuse a reload with status ${status}. ` +
        (status === 404
          ? 'It is no server of this version of Trawl, or a proxy hides /admin.'
          : 'Give --key-file with a key of the scope admin. A server without keys is only reloaded from its own machine.'),
      { details: { url: this.url, status } },
    );
  }

  /**
   * Reloads the index and checks that the server then answers with `generation`. Does nothing if it already does.
   *
   * @throws TrawlError RELOAD_FAILED: the server keeps the index that it had, answers with another one, or does not finish; CANCELLED.
   */
  async swapTo(generation: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#swapTo(generation, signal);
    } catch (error) {
      throwIfCancelled(signal);
      throw error;
    }
  }

  async #swapTo(generation: string, signal: AbortSignal | undefined): Promise<void> {
    const before = await this.facts(signal);
    if (before.generation === generation) return;
    await this.#reload(before.name, generation, signal);
    const after = await this.facts(signal);
    if (after.generation === generation) return;
    throw new TrawlError(
      'RELOAD_FAILED',
      `${this.url} answers with generation ${after.generation} after the reload, not with ${generation}: it does not open the ` +
        'link `current` of --root. Start it with that path, or name the path as the server sees it with --server-folder.',
      { details: { url: this.url, generation: after.generation, expected: generation } },
    );
  }

  async #reload(name: string, generation: string, signal: AbortSignal | undefined): Promise<void> {
    let response: Response;
    try {
      response = await this.#post(name, this.#options.folder, signal);
    } catch (error) {
      throwIfCancelled(signal);
      return this.#awaitReload(name, generation, error, signal);
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

  #post(name: string, folder: string | undefined, signal: AbortSignal | undefined): Promise<Response> {
    const { apiKey } = this.#options;
    return fetch(`${this.#base}/admin/indexes/${encodeURIComponent(name)}/reload`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify(folder === undefined ? {} : { folder }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** A reload of a large index can take longer than `fetch` waits for a reply; the server goes through with it. */
  async #awaitReload(name: string, generation: string, cause: unknown, signal: AbortSignal | undefined): Promise<void> {
    const { openingMs = OPENING_MS } = this.#options;
    const end = performance.now() + openingMs;
    while (await this.#isOpening(name, signal)) {
      if (performance.now() > end) {
        throw new TrawlError(
          'RELOAD_FAILED',
          `${this.url} still opens the index after ${openingMs / 1000} seconds. Run the command again when it has finished.`,
          { details: { url: this.url }, cause },
        );
      }
      await sleep(POLL_MS, undefined, signal === undefined ? {} : { signal });
    }
    const { generation: found } = await this.facts(signal);
    if (found === generation) return;
    throw new TrawlError(
      'RELOAD_FAILED',
      `${this.url} was lost during the reload (${(cause as Error).message}) and answers with generation ${found}.`,
      { cause },
    );
  }

  /** Whether the server is opening the index. False if it does not say, or does not answer. */
  async #isOpening(name: string, signal: AbortSignal | undefined): Promise<boolean> {
    const readiness = await this.#client.ready(signal === undefined ? {} : { signal }).catch(() => undefined);
    throwIfCancelled(signal);
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
