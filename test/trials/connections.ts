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
/** Divides the number of connections with TLS, because both sides need CPU time for each handshake. */
const TLS_DIVISOR = 10;
/** Pause for the last sockets to close. */
const SETTLE_MS = 2_000;
/** Allowed growth of the process, whatever the number of connections: buffers that the allocator keeps. */
const GROWTH_MB = 150;
const PROGRESS_MS = 10_000;
const WARM_UP_DIVISOR = 5;

const GET = 'GET /livez HTTP/1.1\r\nhost: x\r\n\r\n';
const GET_AND_CLOSE = GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
const HALF = 'POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-ty';
const SEARCH = requestBytes({ queries: ['a bridge'], topk: 3 });
/** The beginning of a TLS handshake: a record that promises 512 bytes. */
const HALF_HELLO = Buffer.from('16030102000100', 'hex');

/** What a client does with its connection. `answered` resolves when the first bytes of an answer arrive. */
type Behaviour = (socket: Socket, answered: Promise<void>) => void | Promise<void>;

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
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

const TLS_BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
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
        // The load and the first connections let the heap grow to its usual size, which is no leak.
        await openAndClose(server.port, BEHAVIOURS, Math.ceil(options.connections / WARM_UP_DIVISOR));
        const before = await server.sample();
        const counts = await openAndClose(server.port, BEHAVIOURS, options.connections, options.onProgress);
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
      // The first connections start threads and allocate buffers, which are no leak.
      await openAndClose(server.port, TLS_BEHAVIOURS, 200);
      await sleep(SETTLE_MS);
      const before = await server.sample();
      const counts = await openAndClose(
        server.port,
        TLS_BEHAVIOURS,
        Math.ceil(options.connections / TLS_DIVISOR),
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
  /** Allowed growth of the number of handles: connections of the load's clients and of the request for /metrics. */
  moreHandles: number,
): { counts: Counts; faults: Readonly<Record<string, number>> } {
  const faults = new Faults();
  if (after.handles > before.handles + moreHandles) faults.add('more handles', after.handles - before.handles);
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

/** Opens and closes connections; returns how many ended in each way. */
async function openAndClose(
  port: number,
  behaviours: Readonly<Record<string, Behaviour>>,
  connections: number,
  onProgress: (line: string) => void = () => undefined,
): Promise<Record<string, number>> {
  const names = Object.keys(behaviours);
  const counts: Record<string, number> = Object.fromEntries(names.map((name) => [name, 0]));
  let next = 0;
  const progress = setInterval(() => onProgress(`${next} of ${connections} connections`), PROGRESS_MS);
  const one = async (): Promise<void> => {
    while (next < connections) {
      const i = next++;
      const name = names[i % names.length]!;
      const fault = await connection(port, i, behaviours[name]!);
      const what = fault === undefined ? name : `not ${name}: ${fault}`;
      counts[what] = (counts[what] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  clearInterval(progress);
  return counts;
}

/** A connection without any traffic for this time has failed. */
const TIMEOUT_MS = 60_000;

/** Opens a connection and waits for its end; returns what went wrong, or undefined. */
async function connection(port: number, i: number, behaviour: Behaviour): Promise<string | undefined> {
  // Several addresses, because the ports of one would run out: the side that closes keeps its port for a minute.
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.${1 + (i % 200)}.1` });
  let fault: string | undefined = 'not connected';
  const ended = closed(socket);
  socket.on('error', () => undefined);
  socket.setTimeout(TIMEOUT_MS, () => {
    fault = 'no answer';
    socket.destroy();
  });
  socket.on('connect', () => {
    fault = 'not closed';
    const answered = firstBytes(socket);
    // Most behaviours do not wait for it, so a rejection would be unhandled.
    answered.catch(() => undefined);
    Promise.resolve(behaviour(socket, answered)).then(
      () => (fault = undefined),
      (error: Error) => {
        fault = error.message;
        socket.destroy();
      },
    );
  });
  await ended;
  // A behaviour that waits for the end of the connection completes after this promise.
  await sleep(0);
  return fault;
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
    // Only the TLS socket may read the bytes of the handshake.
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
