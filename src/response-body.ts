import { untilAborted } from './abort.ts';

/**
 * A request of `fetch` whose promise settles when its signal is aborted. With Node.js 22, what `fetch` returned may stay pending for ever when
 * a connection ends at a bad moment, even after its signal was aborted (undici; seen 11 times in 48 runs of test/sync/server-source.test.ts).
 */
export function fetchUntilAborted(
  url: string | URL,
  options: RequestInit & { readonly signal: AbortSignal },
): Promise<Response> {
  return untilAborted(fetch(url, options), options.signal);
}

/** The parts of a reply's body, as they arrive. @throws TrawlError CANCELLED when the signal is aborted; else what the body fails with. */
export async function* bodyParts(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Ends a reply whose body nobody reads. Does not wait for it, because that may stay pending too. */
export function dropBody({ body }: Response): void {
  if (body?.locked === false) body.cancel().catch(() => undefined);
}
