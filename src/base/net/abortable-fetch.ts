import { untilAborted } from '../abort.ts';

/**
 * `fetch` whose promise rejects when the signal aborts. The `fetch` of Node.js 22 sometimes stays pending when a connection ends (11 of 48
 * runs of test/indexer/sync/server-source.test.ts under load), and so do reading and cancelling a body, which the functions below guard.
 *
 * @throws the signal's reason, as `fetch` does.
 */
export function abortableFetch(
  url: string | URL,
  options: RequestInit & { readonly signal: AbortSignal },
): Promise<Response> {
  return untilAborted(fetch(url, options), options.signal, () => options.signal.reason);
}

/** The chunks of a response's body. @throws the signal's reason when it aborts. */
export async function* bodyChunks(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal, () => signal.reason);
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

export async function bodyText(response: Response, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bodyChunks(response, signal)) chunks.push(chunk);
  // As `Response.text` does, without a byte order mark.
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** Cancels a body that nobody reads, without waiting for it. */
export function dropBody({ body }: Response): void {
  if (body?.locked === false) body.cancel().catch(() => undefined);
}
