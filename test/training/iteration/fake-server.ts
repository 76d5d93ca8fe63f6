import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { ServedIndex, type ServerOptions } from '../../../training/iteration/served-index.ts';
import type { FakeLoop } from './fake-loop.ts';

interface FakeServer {
  readonly server: ServedIndex;
  readonly url: string;
  generation: string;
  /** What a reload does. Default: the server follows the link. */
  onReload: () => { status: number; body: object };
  /** Status of a reload that cannot be meant: only the key is checked. */
  checkStatus: number;
  /** What `/readyz` says of the index. */
  stage: string;
  reloads: number;
  bodies: string[];
}

/** A server with one index that answers from the link of a loop. */
export async function fakeServer(t: TestContext, loop: FakeLoop, options: ServerOptions = {}): Promise<FakeServer> {
  const follow = () => {
    fake.generation = loop.folder.current().generation;
    return { status: 200, body: {} };
  };
  const http = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += String(chunk);
    });
    request.on('end', () => {
      const isCheck = text.includes('\\u0000');
      const isReload = request.method === 'POST' && !isCheck;
      if (isReload) {
        fake.reloads++;
        fake.bodies.push(text);
      }
      const { status, body } = isReload
        ? fake.onReload()
        : {
            status: isCheck ? fake.checkStatus : 200,
            body: { indexes: [{ name: 'current', generation: fake.generation, stage: fake.stage }] },
          };
      if (status === 0) response.destroy();
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const fake: FakeServer = {
    server: new ServedIndex(url, options),
    url,
    generation: loop.folder.current().generation,
    onReload: follow,
    checkStatus: 422,
    stage: 'ready',
    reloads: 0,
    bodies: [],
  };
  return fake;
}
