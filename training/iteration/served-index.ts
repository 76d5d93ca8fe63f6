import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { TrawlClient } from '../../src/client/client.ts';
import { TrawlConnectionError, TrawlResponseError } from '../../src/client/errors.ts';

export interface ServerOptions {
  /** Key with the scope admin. */
  readonly apiKey?: string;
  /** The folder that the server opens. Default: the one that it was started with. */
  readonly folder?: string;
  /** Says in messages what to do about a server that opens another index than expected. Default: the advice of `trawl iterate`. */
  readonly advice?: string;
  /** Longest wait for a server that opens an index, in milliseconds. Default: 30 minutes. */
  readonly openingMs?: number;
  /** Longest wait for a server that no longer answers, in milliseconds. Default: 30 seconds. */
  readonly silentMs?: number;
}

/** Milliseconds between two questions whether a reload has ended. */
const POLL_MS = 200;
const OPENING_MS = 30 * 60_000;
const SILENT_MS = 30_000;
/** How often a reload is asked for again whose reply was lost. */
const MAX_REPEATS = 2;
/** Statuses of a proxy that did not wait for the server, which goes on. A 503 of the server itself has a code. */
const LOST_STATUSES: ReadonlySet<number> = new Set([408, 502, 503, 504]);

const JSON_TYPE = { 'content-type': 'application/json' };

/** No path: a reload with it is refused, after the key was checked. */
const REFUSED_FOLDER = '\0';

export class ServedIndex {
  /** As given, for messages. */
  readonly url: string;
  readonly #base: string;
  /** Undefined: the only index of the server. */
  readonly #name: string | undefined;
  readonly #options: ServerOptions;
  readonly #client: TrawlClient;

  /** @param url of the server, or of one of its indexes: `http://host:8000/indexes/NAME`. */
  constructor(url: string, options: ServerOptions = {}) {
    this.url = url;
    const [, base, name] = /^(https?:\/\/.+?)(?:\/indexes\/([^/]+))?\/*$/.exec(url) ?? [];
    if (url.includes(',')) {
      throw usageError(`--server is ${JSON.stringify(url)}. Repeat the option for several servers.`);
    }
    if (base === undefined) {
      throw usageError(
        `--server is ${JSON.stringify(url)}; expected http://HOST:PORT or http://HOST:PORT/indexes/NAME.`,
      );
    }
    this.#base = base;
    this.#name = name;
    this.#options = options;
    this.#client = new TrawlClient(base, { retry: { attempts: 3 }, apiKey: options.apiKey });
  }

  /** Name and generation of the index. @throws TrawlError CONFIG_INVALID if the server cannot be asked or does not have it. */
  async facts(signal?: AbortSignal): Promise<{ readonly name: string; readonly generation: string }> {
    const indexes = await this.#client.indexes({ signal }).catch((cause: unknown) => {
      if (!(cause instanceof TrawlResponseError || cause instanceof TrawlConnectionError)) throw cause;
      throw new TrawlError('CONFIG_INVALID', `${this.url} cannot be asked for its indexes: ${cause.message}`, {
        cause,
      });
    });
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
          ? 'The server runs another version of Trawl, or a proxy hides /admin.'
          : 'Give --key-file with a key of the scope admin. A server without keys is only reloaded from its own machine.'),
      { details: { url: this.url, status } },
    );
  }

  /**
   * Reloads the index and checks that the server then answers with `generation`. Does nothing if it already does, and opens no other.
   *
   * @throws TrawlError RELOAD_FAILED: the server keeps the index that it had, answers with another one, or does not finish; CANCELLED.
   */
  swapTo(generation: string, signal?: AbortSignal): Promise<void> {
    return this.#completed(signal, async () => {
      const before = await this.facts(signal);
      if (before.generation === generation && (await this.#stateOf(before.name, signal)) !== 'opening') return;
      const refusal = await this.#reload(before.name, generation, { needsReply: false, signal });
      if (refusal !== undefined) throw refusal;
      await this.#checkGeneration(generation, signal);
    });
  }

  /**
   * Has the server answer with `generation` again, after a swap that failed. Always asks for a reload: the one that failed may go on in
   * the background, and the server opens one index after the other, so that the reply to this reload comes after its end.
   *
   * @throws TrawlError as `swapTo`.
   */
  takeBackTo(generation: string, signal?: AbortSignal): Promise<void> {
    return this.#completed(signal, async () => {
      const { name } = await this.facts(signal);
      await this.#reload(name, generation, { needsReply: true, signal });
      // A server that refuses both reloads still has the index.
      await this.#checkGeneration(generation, signal);
    });
  }

  async #completed(signal: AbortSignal | undefined, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throwIfCancelled(signal);
      if (!(error instanceof TrawlError) || error.code !== 'CONFIG_INVALID') throw error;
      // It was asked before, so it was lost meanwhile.
      throw new TrawlError('RELOAD_FAILED', error.message, { details: error.details, cause: error });
    }
  }

  async #checkGeneration(generation: string, signal: AbortSignal | undefined): Promise<void> {
    const after = await this.facts(signal);
    if (after.generation === generation) return;
    throw new TrawlError(
      'RELOAD_FAILED',
      `${this.url} answers with generation ${after.generation} after the reload, not with ${generation}: ` +
        (this.#options.advice ??
          'it does not open the link `current` of --root. Start it with that path, or name the path as the server sees it with ' +
            '--server-folder.'),
      { details: { url: this.url, generation: after.generation, expected: generation } },
    );
  }

  /**
   * Asks for a reload until its end is known. Returns the error if the server answered that it keeps its index.
   *
   * @param needsReply whether the end must be known by a reply, and not only by the generation that answers: it may be the one from
   * before the reload.
   */
  async #reload(
    name: string,
    generation: string,
    { needsReply, signal }: { readonly needsReply: boolean; readonly signal: AbortSignal | undefined },
  ): Promise<TrawlError | undefined> {
    const { openingMs = OPENING_MS } = this.#options;
    const end = performance.now() + openingMs;
    let reply = await this.#askForReload(name, signal);
    for (let repeats = 0; reply.lost !== undefined; repeats++) {
      // A reload can take longer than `fetch` or a proxy waits for a reply; the server goes through with it.
      await this.#awaitOpening(name, end, { cause: reply.lost, signal });
      const { generation: found } = await this.facts(signal);
      const isAsked = found === generation;
      if (isAsked && (!needsReply || repeats === MAX_REPEATS)) return undefined;
      if (repeats === MAX_REPEATS) {
        throw new TrawlError(
          'RELOAD_FAILED',
          `${this.url} was lost during the reload (${reply.lost.message}) and answers with generation ${found}. Its log says why; the ` +
            'same command asks again.',
          { details: { url: this.url, generation: found, expected: generation }, cause: reply.lost },
        );
      }
      reply = await this.#askForReload(name, signal);
    }
    return reply.refused;
  }

  async #askForReload(
    name: string,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly lost?: Error; readonly refused?: TrawlError }> {
    let response: Response;
    try {
      response = await this.#post(name, this.#options.folder, signal);
    } catch (error) {
      throwIfCancelled(signal);
      return { lost: error as Error };
    }
    const body = await response.text().catch(() => '');
    // The status is known only at the end of a reload, so a reply that was cut after it is one.
    if (response.ok) return {};
    const { status } = response;
    const { code, message } = errorIn(body);
    if (LOST_STATUSES.has(status) && code === undefined) return { lost: new Error(`status ${status}: ${message}`) };
    const text = `${this.url} refused the reload with status ${status}: ${message}`;
    return { refused: new TrawlError('RELOAD_FAILED', text, { details: { url: this.url, status } }) };
  }

  #post(name: string, folder: string | undefined, signal: AbortSignal | undefined): Promise<Response> {
    const { apiKey } = this.#options;
    return fetch(`${this.#base}/admin/indexes/${encodeURIComponent(name)}/reload`, {
      method: 'POST',
      headers: apiKey === undefined ? JSON_TYPE : { ...JSON_TYPE, authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ folder }),
      signal,
    });
  }

  async #awaitOpening(
    name: string,
    end: number,
    { cause, signal }: { readonly cause: Error; readonly signal: AbortSignal | undefined },
  ): Promise<void> {
    const { openingMs = OPENING_MS, silentMs = SILENT_MS } = this.#options;
    let answered = performance.now();
    for (;;) {
      const state = await this.#stateOf(name, signal);
      if (state === 'idle') return;
      const now = performance.now();
      if (state === 'opening') answered = now;
      const problem =
        now > end
          ? `${this.url} still opens the index after ${openingMs / 1000} seconds.`
          : now - answered > silentMs
            ? `${this.url} was lost during the reload (${cause.message}) and has not answered for ${silentMs / 1000} seconds.`
            : undefined;
      if (problem !== undefined) {
        const advice = 'Run the command again when it has finished.';
        throw new TrawlError('RELOAD_FAILED', `${problem} ${advice}`, { details: { url: this.url }, cause });
      }
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  /** Whether the server is opening the index; `silent` if it does not say. */
  async #stateOf(name: string, signal: AbortSignal | undefined): Promise<'opening' | 'idle' | 'silent'> {
    const readiness = await this.#client.ready({ signal }).catch(() => undefined);
    throwIfCancelled(signal);
    const indexes = readiness?.facts.indexes;
    if (!Array.isArray(indexes)) return 'silent';
    const index = (indexes as { name: unknown; stage: unknown }[]).find((each) => each.name === name);
    if (typeof index?.stage !== 'string') return 'silent';
    return index.stage === 'ready' || index.stage === 'failed' ? 'idle' : 'opening';
  }
}

/** What a reply says; `code` only if it is of a Trawl server. */
function errorIn(text: string): { readonly code?: string; readonly message: string } {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } };
    const code = typeof error?.code === 'string' ? error.code : undefined;
    if (typeof error?.message === 'string') return { code, message: error.message };
  } catch {
    // A proxy, for example, answers in HTML.
  }
  return { message: text.slice(0, 200) || 'no reason given.' };
}
