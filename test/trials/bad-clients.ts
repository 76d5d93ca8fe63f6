import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../helpers/seeded-random.ts';
import { soakQueries } from '../soak/expected-answers.ts';
import { requestBytes } from '../soak/good-client.ts';
import { HOSTILE_BEHAVIOURS, HostileTally, hostileClient } from '../soak/hostile-clients.ts';
import { metricOf } from '../soak/soak-server.ts';
import { Faults, megabytes, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const HOSTILE_CLIENTS = 24;
const SEED = 8_000;

export const badClients: Trial = {
  name: 'clients that hang up, stall, never read and send random bytes',
  async run(options) {
    const queries = await soakQueries(QUERIES);
    return underLoad(options.index, options, {
      queries,
      mayRefuse: true,
      async during(server, stopped) {
        const tally = new HostileTally();
        const clients = Array.from({ length: HOSTILE_CLIENTS }, (_, i) =>
          hostileClient(Object.keys(HOSTILE_BEHAVIOURS), {
            port: server.port,
            queries,
            tally,
            random: seededRandom(SEED + i),
            stopped,
            holdMs: Math.min(5_000, options.seconds * 200),
          }),
        );
        await Promise.all(clients);
        return {
          counts: { ...tally.done, 'statuses they saw': list(tally.statuses) },
          faults: Object.fromEntries(tally.failures.map((status) => [`status ${status}`, tally.statuses[status]!])),
        };
      },
    });
  },
};

const STALL_S = 3;
/** Beyond the limit, for a busy machine and because Node checks timeouts at intervals. */
const SLACK_S = 10;
/** Node's time limit for headers is 60 s, checked every 10 s. */
const HEADERS_S = 70;

/** A group of clients that are too slow. */
interface SlowClients {
  readonly count: number;
  /** The server must disconnect them within this time. */
  readonly disconnectedWithinS: number;
  /** Sends the first bytes. The function that it returns is called every second. */
  begin(socket: Socket): () => void;
}

/** Requests an answer larger than the socket buffers, and does not read it. All queries are equal, so it costs little. */
function requestLargeAnswer(socket: Socket): void {
  socket.pause();
  socket.write(requestBytes({ queries: new Array(1_500).fill('a bridge'), topk: 20, return_scores: true }));
}

const UNREAD: Readonly<Record<string, SlowClients>> = {
  'that read nothing': {
    count: 6,
    disconnectedWithinS: STALL_S,
    begin(socket) {
      requestLargeAnswer(socket);
      // A socket that is not read does not notice the disconnect. Writing a byte after the time limit reveals it.
      let second = 0;
      return () => void (++second > STALL_S + SLACK_S && socket.write('x'));
    },
  },
  'that read nothing and keep sending': {
    count: 6,
    disconnectedWithinS: STALL_S,
    begin(socket) {
      requestLargeAnswer(socket);
      return () => void socket.write('x');
    },
  },
};

const SLOW: Readonly<Record<string, SlowClients>> = {
  ...UNREAD,
  'that send nothing': { count: 100, disconnectedWithinS: HEADERS_S, begin: () => () => undefined },
  'that send a byte of a header each second': {
    count: 100,
    disconnectedWithinS: HEADERS_S,
    begin(socket) {
      socket.write('POST /retrieve HTTP/1.1\r\nx-slow: ');
      return () => void socket.write('y');
    },
  },
};

/** The server disconnects every slow client in time and answers the others. */
export const slowClients: Trial = {
  name: 'clients that are too slow',
  async run(options) {
    const groups: Readonly<Record<string, SlowClients>> = options.patient ? SLOW : UNREAD;
    return underLoad(options.index, options, {
      // So that no large answer is refused.
      server: { args: ['--stall-s', `${STALL_S}`, '--max-waiting-mib', '4096'] },
      queries: await soakQueries(QUERIES),
      async during(server) {
        const faults = new Faults();
        const before = await server.sample();
        const all = Object.entries(groups).flatMap(([name, group]) =>
          Array.from({ length: group.count }, () => ({ name, group, socket: connect(server.port, '127.0.0.1') })),
        );
        const startedAt = performance.now();
        const disconnectedAfterS = new Map<string, number[]>(Object.keys(groups).map((name) => [name, []]));
        const ends = all.map(({ name, group, socket }) => {
          socket.on('error', () => undefined);
          const everySecond = group.begin(socket);
          const ticks = setInterval(() => {
            if (!socket.destroyed) everySecond();
          }, 1_000);
          if (!(name in UNREAD)) socket.resume();
          return closed(socket).then(() => {
            clearInterval(ticks);
            disconnectedAfterS.get(name)!.push((performance.now() - startedAt) / 1000);
          });
        });
        const peak = await server.sample();
        const longest = Math.max(...Object.values(groups).map(({ disconnectedWithinS }) => disconnectedWithinS));
        let waited = 0;
        while (waited < longest + 2 * SLACK_S && server.alive) {
          if ([...disconnectedAfterS.values()].reduce((sum, { length }) => sum + length, 0) === all.length) break;
          await sleep(1_000);
          waited++;
          if (waited % 10 === 0)
            options.onProgress?.(`${waited} s, disconnected: ${list(lengths(disconnectedAfterS))}`);
        }
        for (const { socket } of all) socket.destroy();
        const inTime = lengths(disconnectedAfterS);
        await Promise.all(ends);
        for (const [name, { count }] of Object.entries(groups)) {
          if (inTime[name] !== count) faults.add(`clients ${name} not disconnected`, count - inTime[name]!);
        }
        const stalled = metricOf(await server.metrics(), 'trawl_disconnects_total', 'stalled');
        const unread = Object.values(UNREAD).reduce((sum, { count }) => sum + count, 0);
        if (stalled !== unread) faults.add(`trawl_disconnects_total is ${stalled}`);
        await sleep(1_000);
        const after = await server.sample();
        return {
          counts: {
            ...Object.fromEntries(
              [...disconnectedAfterS].map(([name, seconds]) => [
                `${name}, disconnected after s`,
                `${seconds.length}: ${span(seconds)}`,
              ]),
            ),
            handles: `${before.handles} → ${peak.handles} → ${after.handles}`,
            'resident MB': `${megabytes(before.rssBytes)} → ${megabytes(after.rssBytes)}`,
          },
          faults: faults.counts,
        };
      },
    });
  },
};

const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

const lengths = (times: ReadonlyMap<string, readonly number[]>): Record<string, number> =>
  Object.fromEntries([...times].map(([name, { length }]) => [name, length]));

const span = (seconds: readonly number[]): string =>
  seconds.length === 0 ? 'none' : `${Math.min(...seconds).toFixed(0)} to ${Math.max(...seconds).toFixed(0)}`;

const list = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
