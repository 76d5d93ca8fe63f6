import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServedIndex, type ServerOptions } from '../../../training/iteration/served-index.ts';
import type { FakeLoop } from './fake-loop.ts';

interface SlowServer {
  readonly server: ServedIndex;
  readonly url: string;
  readonly generation: string;
  readonly reloads: number;
  /** Resolves when it opens nothing any more. */
  idle(): Promise<unknown>;
  die(): void;
}

interface SlowOptions extends ServerOptions {
  /** How many reloads must have been asked for before the first begins. Default: 1. */
  readonly beginsAfter?: number;
  /** How long a reload takes, in milliseconds. */
  readonly openMs?: number;
  /** What becomes of the reply to a reload, by its number from 1: `cut` at once, or a status of a proxy. Default: the reply. */
  readonly reply?: (number: number) => 'cut' | 504 | 'whole';
}

/** A server that opens one index after the other, each for a while, whether or not anybody waits for the reply. */
export async function slowServer(t: TestContext, loop: FakeLoop, options: SlowOptions = {}): Promise<SlowServer> {
  const { beginsAfter = 1, openMs = 300, reply = () => 'whole' } = options;
  let { generation: served } = loop.folder.current();
  let [reloads, stage] = [0, 'ready'];
  let loads: Promise<unknown> = Promise.resolve();
  let begin: () => void;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const load = async (): Promise<void> => {
    await begun;
    stage = 'loading';
    const { generation: found } = loop.folder.current();
    await sleep(openMs);
    [served, stage] = [found, 'ready'];
  };
  const http = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += String(part);
    const send = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    if (request.method !== 'POST')
      return send(200, JSON.stringify({ indexes: [{ name: 'current', generation: served, stage }] }));
    if (text.includes('\\u0000')) return send(422, '{}');
    const how = reply(++reloads);
    loads = loads.then(load);
    if (reloads === beginsAfter) begin();
    if (how === 'cut') return response.destroy();
    if (how === 504) return send(504, '<html>Gateway Timeout</html>');
    await loads;
    return send(200, '{}');
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const die = () => {
    http.closeAllConnections();
    http.close();
  };
  t.after(die);
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    server: new ServedIndex(url, options),
    url,
    get generation() {
      return served;
    },
    get reloads() {
      return reloads;
    },
    idle: () => loads,
    die,
  };
}
