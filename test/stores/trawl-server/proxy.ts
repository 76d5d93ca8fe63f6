import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What happens to a request in place of passing it on. */
type Fault = 'reset' | { readonly status: number; readonly retryAfter?: string; readonly body?: string };

export interface ProxyScript {
  /** What to do with the request of this number, from 0; undefined: it is passed on. */
  readonly fault?: (number: number, path: string) => Fault | undefined;
  /** Changes the text of a reply. */
  readonly reply?: (text: string, path: string, number: number) => string;
  readonly delayMs?: number;
}

export interface Proxy {
  readonly url: string;
  readonly requests: { readonly path: string; readonly body: string }[];
  /** The largest number of requests at the same time. */
  readonly atOnce: () => number;
}

/** A proxy before a real server, which fails, delays and changes replies by a script. Closed after the test. */
export async function proxyTo(
  t: { after(work: () => void): void },
  target: string | (() => string),
  { fault = () => undefined, reply = (text) => text, delayMs = 0 }: ProxyScript = {},
): Promise<Proxy> {
  const requests: { path: string; body: string }[] = [];
  let running = 0;
  let most = 0;
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString();
    const path = request.url!;
    const number = requests.push({ path, body }) - 1;
    running += 1;
    most = Math.max(most, running);
    try {
      if (delayMs > 0) await sleep(delayMs);
      const found = fault(number, path);
      if (found === 'reset') {
        request.socket.destroy();
        return;
      }
      if (found !== undefined) {
        const headers = found.retryAfter === undefined ? {} : { 'retry-after': found.retryAfter };
        response.writeHead(found.status, headers).end(found.body ?? '');
        return;
      }
      const { authorization } = request.headers;
      const answer = await fetch(`${typeof target === 'string' ? target : target()}${path}`, {
        method: request.method!,
        headers: { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) },
        ...(request.method === 'POST' ? { body } : {}),
      });
      const text = reply(await answer.text(), path, number);
      const state = answer.headers.get('x-trawl-state');
      const headers = { 'content-type': 'application/json', ...(state === null ? {} : { 'x-trawl-state': state }) };
      response.writeHead(answer.status, headers).end(text);
    } catch {
      // The client has gone.
      response.destroy();
    } finally {
      running -= 1;
    }
  };
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, atOnce: () => most };
}
