import { cancelled } from '../src/abort.ts';
import { bodyParts, dropBody, fetchUntilAborted } from '../src/response-body.ts';
import { TransientFailure } from '../src/transfer-retries.ts';

export interface WatchedReply {
  readonly status: number;
  readonly headers: Headers;
  /** @throws TransientFailure if the connection breaks or nothing arrives for the time limit. */
  body(): AsyncGenerator<Uint8Array>;
  /** Ends the request without reading its body. */
  drop(): Promise<void>;
}

/**
 * A GET that fails with a TransientFailure if the connection fails, or if nothing arrives for `stallMs`. Redirects are not followed:
 * the key would go to another server.
 */
export async function watchedFetch(
  url: string,
  { headers, stallMs, signal }: { headers: Readonly<Record<string, string>>; stallMs: number; signal: AbortSignal },
): Promise<WatchedReply> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  signal.addEventListener('abort', stop, { once: true });
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
    signal.removeEventListener('abort', stop);
  };
  const failure = (error: unknown): Error => {
    if (signal.aborted) return cancelled();
    if (stalled) return new TransientFailure(`nothing arrived for ${stallMs / 1000} s`, { cause: error });
    const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
    return new TransientFailure(`the connection failed (${cause?.code ?? cause?.message ?? message})`, {
      cause: error,
    });
  };
  watch();
  try {
    if (signal.aborted) throw cancelled();
    const response = await fetchUntilAborted(url, { redirect: 'manual', signal: controller.signal, headers });
    return {
      status: response.status,
      headers: response.headers,
      async *body() {
        try {
          for await (const part of bodyParts(response, controller.signal)) {
            // The time that the disk takes does not count.
            clearTimeout(timer);
            yield part;
            watch();
          }
        } catch (error) {
          throw failure(error);
        } finally {
          end();
        }
      },
      async drop() {
        end();
        dropBody(response);
      },
    };
  } catch (error) {
    end();
    throw failure(error);
  }
}
