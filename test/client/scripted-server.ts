import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** Status 0: the server closes the connection instead of answering. `half`: it closes it in the middle of the body. */
export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly half?: boolean;
}

interface ScriptedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface ScriptedServer {
  readonly url: string;
  readonly requests: readonly ScriptedRequest[];
  /** Closes the port and every connection, as the end of a process does. */
  stop(): Promise<void>;
  /** Listens on the same port again. */
  start(): Promise<void>;
}

/** A server on a real socket that gives its answers in order and repeats the last one. */
export async function scriptedServer(t: TestContext, ...answers: readonly ScriptedAnswer[]): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = [];
  let server: Server;
  let port = 0;
  const scripted = {
    url: '',
    requests,
    async stop(): Promise<void> {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
    async start(): Promise<void> {
      server = answering(answers, requests);
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      ({ port } = server.address() as AddressInfo);
      scripted.url = `http://127.0.0.1:${port}`;
    },
  };
  t.after(() => scripted.stop());
  await scripted.start();
  return scripted;
}

function answering(answers: readonly ScriptedAnswer[], requests: ScriptedRequest[]): Server {
  return createServer((request, response) => {
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
}
