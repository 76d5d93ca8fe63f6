import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { TrawlClient } from '../../src/client/client.ts';
import { ServedIndex } from '../iteration/served-index.ts';

/** What a server says about an index (GET /admin/indexes/NAME). */
export interface IndexState {
  readonly generation: string | null;
  readonly folderAtStart: string | null;
  readonly opened: readonly {
    readonly generation: string;
    readonly snapshot: string | null;
    readonly folder: string;
  }[];
  readonly next: {
    readonly generation: string | null;
    readonly snapshot: string | null;
    readonly folder: string;
    readonly problem: string | null;
  };
}

export class RolloutServer {
  readonly url: string;
  /** Of the index alone, for questions. */
  readonly client: TrawlClient;
  readonly #name: string;
  readonly #apiKey: string | undefined;

  /** @throws TrawlError USAGE. */
  constructor(url: string, name: string, apiKey: string | undefined) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.search !== '') {
      throw usageError(
        'The URL of a server is not valid; expected http://HOST:PORT, without a user. Pass a key with --key-file.',
      );
    }
    this.url = parsed.href.replace(/\/+$/, '');
    this.#name = name;
    this.#apiKey = apiKey;
    this.client = new TrawlClient(`${this.url}/indexes/${encodeURIComponent(name)}`, {
      retry: { attempts: 3 },
      apiKey,
    });
  }

  /**
   * @param folder the folder whose index is `next`. Default: the folder that the server was started with.
   * @throws TrawlError ROLLOUT_FAILED if the server cannot be asked, or is not ready.
   */
  async state(folder: string | undefined, signal: AbortSignal): Promise<IndexState> {
    const query = folder === undefined ? '' : `?folder=${encodeURIComponent(folder)}`;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.url}/admin/indexes/${encodeURIComponent(this.#name)}${query}`, {
        headers: this.#apiKey === undefined ? {} : { authorization: `Bearer ${this.#apiKey}` },
        signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
      });
      text = await response.text();
    } catch (cause) {
      throwIfCancelled(signal);
      const { message, cause: reason } = cause as Error;
      throw this.#failed(`cannot be asked: ${reason instanceof Error ? reason.message || message : message}`, cause);
    }
    if (!response.ok) throw this.#failed(refusalOf(response.status, text));
    try {
      const { generation, folder_at_start, opened, next } = JSON.parse(text);
      if (Array.isArray(opened)) return { generation, folderAtStart: folder_at_start, opened, next };
    } catch {
      // A proxy, for example, answers in HTML.
    }
    throw this.#failed('does not answer as a Trawl server of this version');
  }

  /** @throws TrawlError ROLLOUT_FAILED. */
  async requireReady(signal: AbortSignal): Promise<void> {
    const readiness = await this.client.ready({ signal }).catch((error: unknown) => {
      throwIfCancelled(signal);
      throw this.#failed(`is not ready: ${(error as Error).message}`, error);
    });
    if (!readiness.ready) throw this.#failed(`is not ready: ${readiness.status}`);
  }

  /**
   * Has the server open a folder, and checks that it then answers with this index.
   *
   * @param isBack whether an earlier reload, whose reply was lost, may go on and must have ended.
   * @throws TrawlError RELOAD_FAILED: the server keeps the index that it had; ROLLOUT_FAILED: it answers with another one; CANCELLED.
   */
  async reload(
    folder: string,
    { generation, snapshot, isBack = false }: { generation: string; snapshot: string | null; isBack?: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const served = new ServedIndex(`${this.url}/indexes/${encodeURIComponent(this.#name)}`, {
      apiKey: this.#apiKey,
      folder,
      advice: `check ${folder} on that machine.`,
    });
    const before = await this.state(folder, signal);
    // An index that got inverted indexes or codes has the generation of before.
    if (isBack || before.generation === generation) await served.takeBackTo(generation, signal);
    else await served.swapTo(generation, signal);
    const current = (await this.state(folder, signal)).opened.at(-1);
    if (snapshot === null || current?.snapshot === snapshot || current?.snapshot === null) return;
    throw this.#failed(`did not open the index in ${folder}; its log says why`);
  }

  #failed(reason: string, cause?: unknown): TrawlError {
    return new TrawlError('ROLLOUT_FAILED', `${this.url} ${reason}.`, { details: { url: this.url }, cause });
  }
}

function refusalOf(status: number, text: string): string {
  let message = '';
  try {
    message = `: ${(JSON.parse(text) as { error: { message: string } }).error.message.replace(/\.$/, '')}`;
  } catch {
    // Of a proxy.
  }
  const advice =
    status === 401 || status === 403
      ? '. Give --key-file with a key of the scope admin; a server without keys lets only its own machine'
      : status === 404
        ? '. Check --index, and that the server has this version of Trawl'
        : '';
  return `answers with status ${status}${message}${advice}`;
}
