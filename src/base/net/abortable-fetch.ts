import { untilAborted } from '../abort.ts';
import { unusedProxy } from '../options/environment.ts';

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

/** What helps against the errors of a connection, by their codes. */
const REMEDIES: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server has no TLS; write http: in place of https:',
  HPE_INVALID_CONSTANT: 'the server does not answer in HTTP; write https: if it has TLS',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'name the certificate in NODE_EXTRA_CA_CERTS',
  SELF_SIGNED_CERT_IN_CHAIN: 'name the certificate of its authority in NODE_EXTRA_CA_CERTS',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'name the certificate of its authority in NODE_EXTRA_CA_CERTS',
};

/** Why `fetch` had no answer, such as `ECONNREFUSED`, and what helps. Only codes, because a message may repeat the URL. */
export function connectionFault(error: unknown): string {
  const { code, message } = ((error as Error).cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (message === 'bad port') return 'Node.js asks nothing of this port; use another one';
  if (typeof code !== 'string' || !/^[A-Z_0-9]{3,60}$/.test(code)) return 'it was lost';
  const proxy = unusedProxy();
  const unused = proxy === undefined ? undefined : `${proxy} is set, but counts only with NODE_USE_ENV_PROXY=1`;
  const remedy = REMEDIES[code] ?? unused;
  return remedy === undefined ? code : `${code}: ${remedy}`;
}
