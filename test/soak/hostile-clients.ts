import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { requestBytes } from './good-client.ts';

/** What hostile clients did, and which statuses they saw. */
export class HostileTally {
  readonly done: Record<string, number> = {};
  readonly statuses: Record<string, number> = {};

  did(what: string): void {
    this.done[what] = (this.done[what] ?? 0) + 1;
  }

  saw(status: string): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
  }

  /** Statuses that no client may ever get: 5xx other than 503, and 501 for what the server was not started with. */
  get failures(): string[] {
    return Object.keys(this.statuses).filter((status) => /^5/.test(status) && !['501', '503'].includes(status));
  }
}

export interface HostileOptions {
  readonly port: number;
  readonly queries: readonly string[];
  readonly tally: HostileTally;
  readonly random: () => number;
  readonly stopped: () => boolean;
  /** How long clients hold a connection open, ms. */
  readonly holdMs: number;
}

/** What a hostile client does with one connection. */
export type HostileBehaviour = (socket: Socket, options: HostileOptions) => Promise<void>;

const randomQueries = ({ queries, random }: HostileOptions, count: number): string[] =>
  Array.from({ length: count }, () => queries[Math.floor(random() * queries.length)]!);

async function hold(options: HostileOptions): Promise<void> {
  const until = performance.now() + options.holdMs;
  while (performance.now() < until && !options.stopped()) await sleep(50);
}

/** A request of each dialect. */
const EXAMPLES = DIALECTS.filter(({ method, example }) => method === 'POST' && Object.keys(example).length > 0);

export const HOSTILE_BEHAVIOURS: Readonly<Record<string, HostileBehaviour>> = {
  async 'hangs up'(socket, options) {
    socket.write(requestBytes({ queries: randomQueries(options, 1 + Math.floor(options.random() * 64)), topk: 3 }));
    await sleep(options.random() * 30);
    if (options.random() < 0.5) socket.resetAndDestroy();
    else socket.destroy();
  },
  async 'sends a request of any dialect and hangs up'(socket, options) {
    const { path, example } = EXAMPLES[Math.floor(options.random() * EXAMPLES.length)]!;
    socket.write(requestBytes(example, path));
    await sleep(options.random() * 100);
    if (options.random() < 0.5) socket.resetAndDestroy();
  },
  async 'hangs up in the middle of a request'(socket, options) {
    const whole = requestBytes({ queries: randomQueries(options, 64), topk: 3 });
    socket.write(whole.subarray(0, Math.floor(options.random() * whole.length)));
    await sleep(options.random() * 20);
    socket.destroy();
  },
  async 'sends a byte at a time'(socket, options) {
    const whole = requestBytes({ queries: randomQueries(options, 2), topk: 3 });
    const until = performance.now() + options.holdMs;
    for (let at = 0; at < whole.length && performance.now() < until && !options.stopped(); at++) {
      if (socket.destroyed) return;
      socket.write(whole.subarray(at, at + 1));
      await sleep(20);
    }
  },
  async 'connects and sends nothing'(_socket, options) {
    await hold(options);
  },
  async 'never reads'(socket, options) {
    socket.pause();
    for (let i = 0; i < 4; i++)
      socket.write(requestBytes({ queries: randomQueries(options, 512), topk: 10, return_scores: true }));
    await hold(options);
  },
  async 'keeps sending requests and never reads'(socket, options) {
    socket.pause();
    const until = performance.now() + options.holdMs;
    while (performance.now() < until && !options.stopped() && !socket.destroyed) {
      // Bounds the memory of this client if the server stops reading.
      if (socket.writableLength < 65_536) socket.write(requestBytes({ queries: randomQueries(options, 8), topk: 10 }));
      await sleep(5);
    }
  },
  async 'sends random bytes'(socket, options) {
    const length = 1 + Math.floor(options.random() * 4_000);
    socket.write(Buffer.from(Array.from({ length }, () => Math.floor(options.random() * 256))));
    await sleep(20);
  },
  async 'sends invalid bodies'(socket, options) {
    const bodies = ['{', '[]', '{"queries":"x"}', '{"queries":[1]}', '{"queries":["x"],"topk":-1}', 'null', '\u0000'];
    const body = bodies[Math.floor(options.random() * bodies.length)]!;
    socket.write(
      `POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    await sleep(20);
  },
  async 'sends endless headers'(socket, options) {
    socket.write('GET / HTTP/1.1\r\n');
    for (let i = 0; i < 200 && !socket.destroyed && !options.stopped(); i++) {
      socket.write(`x-${i}: ${'y'.repeat(500)}\r\n`);
      if (i % 20 === 0) await sleep(1);
    }
  },
  async 'sends several large batches at once'(socket, options) {
    for (let i = 0; i < 3; i++)
      socket.write(requestBytes({ queries: randomQueries(options, 512), topk: 3, return_scores: true }));
    await hold(options);
  },
};

/** Shows random ones of the named behaviours, each on a new connection, until `stopped`. */
export async function hostileClient(names: readonly string[], options: HostileOptions): Promise<void> {
  const { port, tally, random, stopped } = options;
  while (!stopped()) {
    const name = names[Math.floor(random() * names.length)]!;
    const socket = connect(port, '127.0.0.1');
    let first = true;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      if (first) tally.saw(/^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1', 0, 12))?.[1] ?? 'not HTTP');
      first = false;
    });
    try {
      await once(socket, 'connect');
      await HOSTILE_BEHAVIOURS[name]!(socket, options);
      tally.did(name);
    } catch {
      tally.did('could not connect');
      await sleep(20);
    } finally {
      socket.destroy();
    }
  }
}
