import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** Status 0 cuts the connection once the request is read; `half` cuts it in the middle of the body. */
export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly half?: boolean;
}

export interface ScriptedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** A server on a real socket that gives its answers in order, the last one for ever: ours on a bad day. */
export async function scriptedServer(
  t: TestContext,
  ...answers: readonly ScriptedAnswer[]
): Promise<{ url: string; requests: ScriptedRequest[] }> {
  const requests: ScriptedRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const text = Buffer.concat(chunks).toString();
      requests.push({ method, url, headers, body: text === '' ? undefined : JSON.parse(text) });
      const answer = answers[Math.min(requests.length, answers.length) - 1]!;
      if (answer.status === 0) {
        request.socket.destroy();
        return;
      }
      const body = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {});
      response.writeHead(answer.status, { ...answer.headers, 'content-length': String(Buffer.byteLength(body)) });
      if (answer.half === true) response.write(body.slice(0, body.length / 2), () => request.socket.destroy());
      else response.end(body);
    });
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
