import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CuttingProxy {
  readonly url: string;
  /** Reloads whose reply was cut. */
  readonly cuts: number;
}

/** A proxy in front of a server that cuts the connections of the first `cuts` reloads as soon as the server has got the request. */
export async function cuttingProxy(
  t: { after(work: () => void): void },
  server: string,
  { cuts }: { readonly cuts: number },
): Promise<CuttingProxy> {
  let done = 0;
  const { hostname, port } = new URL(server);
  const forward = (client: IncomingMessage, body: Buffer, reply: ServerResponse): void => {
    const { method, url: path, headers } = client;
    const isReload = method === 'POST' && path!.endsWith('/reload') && !body.includes('\\u0000');
    const asked = httpRequest({ hostname, port, method, path, headers }, (found) => {
      if (reply.destroyed) {
        found.resume();
        return;
      }
      reply.writeHead(found.statusCode!, found.headers);
      found.pipe(reply);
    });
    asked.on('error', () => reply.destroy());
    asked.end(body, () => {
      if (!isReload || done >= cuts) return;
      done++;
      reply.destroy();
    });
  };
  const http = createServer(async (client, reply) => {
    const parts: Buffer[] = [];
    for await (const part of client) parts.push(part as Buffer);
    forward(client, Buffer.concat(parts), reply);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    get cuts() {
      return done;
    },
  };
}
