import { cancelled } from '../abort.ts';
import { abortableFetch, bodyChunks, connectionFault, dropBody } from './abortable-fetch.ts';
import { TransientFailure } from './retries.ts';

export interface WatchedReply {
  readonly status: number;
  readonly headers: Headers;
  /** @throws TransientFailure if the connection breaks or nothing arrives for the time limit. */
  body(): AsyncGenerator<Uint8Array>;
  /** Ends the request without reading its body. */
  drop(): void;
}

/**
 * A GET that fails with a TransientFailure if the connection fails, or if nothing arrives for `stallMs`. Redirects are not followed:
 * the key would go to another server.
 */
export async function watchedFetch(
  url: string,
  {
    headers,
    stallMs,
    signal,
  }: {
    readonly headers: Readonly<Record<string, string>>;
    readonly stallMs: number;
    readonly signal?: AbortSignal;
  },
): Promise<WatchedReply> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  signal?.addEventListener('abort', stop, { once: true });
  let stalled = false;
  let timer: NodeJS.Timeout | undefined;
  const watch = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      stalled = true;
      stop();
    }, stallMs);
  };
  const end = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  };
  const failure = (error: unknown): Error => {
    if (signal?.aborted) return cancelled();
    if (stalled) return new TransientFailure(`nothing arrived for ${stallMs / 1000} s`, { cause: error });
    return new TransientFailure(`the connection failed (${connectionFault(error)})`, { cause: error });
  };
  watch();
  try {
    if (signal?.aborted) throw cancelled();
    const response = await abortableFetch(url, { redirect: 'manual', signal: controller.signal, headers });
    return {
      status: response.status,
      headers: response.headers,
      async *body() {
        try {
          for await (const chunk of bodyChunks(response, controller.signal)) {
            // The consumer's time does not count as silence of the server.
            clearTimeout(timer);
            yield chunk;
            watch();
          }
        } catch (error) {
          throw failure(error);
        } finally {
          end();
        }
      },
      drop() {
        end();
        dropBody(response);
        stop();
      },
    };
  } catch (error) {
    end();
    throw failure(error);
  }
}
