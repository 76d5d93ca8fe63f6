import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { makeCertificate, withoutOpenssl } from '../helpers/certificate.ts';
import { soakQueries } from '../soak/expected-answers.ts';
import { requestBytes } from '../soak/good-client.ts';
import { type ProcessSample, type SoakServer, startSoakServer } from '../soak/soak-server.ts';
import { type Counts, Faults, LOAD_CLIENTS, megabytes, Skip, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const AT_ONCE = 200;
/** With TLS each costs the server a handshake, and us another. */
const TLS_SHARE = 10;
/** For the last sockets to close. */
const SETTLE_MS = 2_000;
/** What the process may have grown by, whatever the number of connections: buffers of the allocator. */
const GROWTH_MB = 150;
const PROGRESS_MS = 10_000;

const GET = 'GET /livez HTTP/1.1\r\nhost: x\r\n\r\n';
const GET_AND_CLOSE = GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
const HALF = 'POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-ty';
const SEARCH = requestBytes({ queries: ['a bridge'], topk: 3 });
/** The beginning of a TLS handshake: a record that promises 512 bytes. */
const HALF_HELLO = Buffer.from('16030102000100', 'hex');

/** What a client does with its connection once it is there. `answered`: the first bytes have come. */
type Kind = (socket: Socket, answered: Promise<void>) => void | Promise<void>;

const KINDS: Readonly<Record<string, Kind>> = {
  'closed at once': (socket) => void socket.destroy(),
  'half a request, then closed': (socket) => void socket.end(HALF, () => socket.destroy()),
  'half a request, then reset': (socket) => void socket.write(HALF, () => socket.resetAndDestroy()),
  'answered, closed by the client': async (socket, answered) => {
    socket.write(GET);
    await answered;
    socket.destroy();
  },
  'answered, closed by the server (connection: close)': async (socket, answered) => {
    socket.write(GET_AND_CLOSE);
    await answered;
    await closed(socket);
  },
  'a search, reset before its answer': (socket) => void socket.write(SEARCH, () => socket.resetAndDestroy()),
};

const TLS_KINDS: Readonly<Record<string, Kind>> = {
  'closed at once': (socket) => void socket.destroy(),
  'half a handshake, then closed': (socket) => void socket.write(HALF_HELLO, () => socket.destroy()),
  'plain HTTP, closed by the server': async (socket) => {
    socket.write(GET);
    await closed(socket);
  },
  'a handshake, then closed': async (socket) => void (await secured(socket)).destroy(),
  'answered, closed by the server (connection: close)': async (socket) => {
    const secure = await secured(socket);
    secure.write(GET_AND_CLOSE);
    await firstBytes(secure);
    secure.resume();
    await closed(secure);
  },
};

export const manyConnections: Trial = {
  name: 'connections opened and closed',
  async run(options) {
    return underLoad(options.index, options, {
      queries: await soakQueries(QUERIES),
      async during(server) {
        await sleep(1_000);
        const before = await server.sample();
        const counts = await openAndClose(server.port, KINDS, options.connections, options.onProgress);
        await sleep(SETTLE_MS);
        return found(counts, before, await server.sample(), LOAD_CLIENTS + 2);
      },
    });
  },
};

export const tlsConnections: Trial = {
  name: 'connections opened and closed with TLS',
  async run(options) {
    const missing = withoutOpenssl();
    if (missing !== false) throw new Skip(missing);
    const { files } = makeCertificate(options.folder);
    const server = await startSoakServer(options.index, { args: ['--tls-cert', files.cert, '--tls-key', files.key] });
    let result: ReturnType<typeof found>;
    let exit: unknown;
    try {
      // What begins with the first connections is no growth.
      await openAndClose(server.port, TLS_KINDS, 200);
      await sleep(SETTLE_MS);
      const before = await server.sample();
      const counts = await openAndClose(
        server.port,
        TLS_KINDS,
        Math.ceil(options.connections / TLS_SHARE),
        options.onProgress,
      );
      await sleep(SETTLE_MS);
      result = found(counts, before, await server.sample(), 2);
    } finally {
      exit = await server.stop();
    }
    return exit === 0 ? result : { ...result, faults: { ...result.faults, [`exit ${String(exit)}`]: 1 } };
  },
};

function found(
  counts: Readonly<Record<string, number>>,
  before: ProcessSample,
  after: Awaited<ReturnType<SoakServer['sample']>>,
  /** The clients of the load may open or close theirs between the two looks, and /metrics is asked on one. */
  handlesMore: number,
): { counts: Counts; faults: Readonly<Record<string, number>> } {
  const faults = new Faults();
  if (after.handles > before.handles + handlesMore) faults.add('handles more', after.handles - before.handles);
  if (after.rssBytes > before.rssBytes + GROWTH_MB * 1e6) faults.add('more resident memory');
  for (const [what, count] of Object.entries(counts)) if (what.startsWith('not ')) faults.add(what, count);
  return {
    counts: {
      ...counts,
      handles: `${before.handles} → ${after.handles}`,
      'resident MB': `${megabytes(before.rssBytes)} → ${megabytes(after.rssBytes)}`,
    },
    faults: faults.counts,
  };
}

/** How many ended how. */
async function openAndClose(
  port: number,
  kinds: Readonly<Record<string, Kind>>,
  connections: number,
  onProgress: (line: string) => void = () => undefined,
): Promise<Record<string, number>> {
  const names = Object.keys(kinds);
  const counts: Record<string, number> = Object.fromEntries(names.map((name) => [name, 0]));
  let next = 0;
  const progress = setInterval(() => onProgress(`${next} of ${connections} connections`), PROGRESS_MS);
  const one = async (): Promise<void> => {
    while (next < connections) {
      const i = next++;
      const name = names[i % names.length]!;
      const how = await connection(port, i, kinds[name]!);
      const what = how === undefined ? name : `not ${name}: ${how}`;
      counts[what] = (counts[what] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  clearInterval(progress);
  return counts;
}

/** A server that says nothing for so long counts as failed. */
const TIMEOUT_MS = 60_000;

/** What went wrong; undefined: nothing. */
async function connection(port: number, i: number, kind: Kind): Promise<string | undefined> {
  // Ports of one address would run out: the side that closes keeps its own for a minute.
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.${1 + (i % 200)}.1` });
  let wrong: string | undefined = 'not connected';
  const over = closed(socket);
  socket.on('error', () => undefined);
  socket.setTimeout(TIMEOUT_MS, () => {
    wrong = 'no answer';
    socket.destroy();
  });
  socket.on('connect', () => {
    wrong = 'no end';
    const answered = firstBytes(socket);
    // Most kinds do not wait for it.
    answered.catch(() => undefined);
    Promise.resolve(kind(socket, answered)).then(
      () => (wrong = undefined),
      (error: Error) => {
        wrong = error.message;
        socket.destroy();
      },
    );
  });
  await over;
  // A kind that has seen the end itself says so in a later turn.
  await sleep(0);
  return wrong;
}

const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

function firstBytes(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('data', () => resolve());
    socket.once('close', () => reject(new Error('closed without an answer')));
  });
}

function secured(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // Bytes of the handshake are for TLS alone.
    socket.removeAllListeners('data');
    socket.pause();
    const secure = connectTls({ socket, rejectUnauthorized: false }, () => resolve(secure));
    secure.on('error', reject);
    secure.on('close', () => {
      socket.destroy();
      reject(new Error('closed in the handshake'));
    });
  });
}
