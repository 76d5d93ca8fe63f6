import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../helpers/seeded-random.ts';
import { soakQueries } from '../soak/expected-answers.ts';
import { requestBytes } from '../soak/good-client.ts';
import { HOSTILITIES, HostileTally, hostileClient } from '../soak/hostile-clients.ts';
import { metricOf } from '../soak/soak-server.ts';
import { Faults, megabytes, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const HOSTILE_CLIENTS = 24;
const SEED = 8_000;

export const badClients: Trial = {
  name: 'clients that hang up, stall, never read and send rubbish',
  async run(options) {
    const queries = await soakQueries(QUERIES);
    return underLoad(options.index, options, {
      queries,
      mayRefuse: true,
      async during(server, stopped) {
        const tally = new HostileTally();
        const clients = Array.from({ length: HOSTILE_CLIENTS }, (_, i) =>
          hostileClient(Object.keys(HOSTILITIES), {
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
/** Beside the bound, for a busy machine and the rhythm of Node's looks. */
const SLACK_S = 10;
/** Headers and the first one of a connection: 60 s, looked at every 10. */
const HEADERS_S = 70;

/** A client that is too slow, with the time by which its connection has to be cut. */
interface SlowKind {
  readonly count: number;
  readonly cutWithinS: number;
  /** Sends the first bytes; what it gives is called every second. */
  begin(socket: Socket): () => void;
}

/** An answer that is more than sockets hold, of one query, so that it costs little to compute; nothing of it is read. */
function askForMuch(socket: Socket): void {
  socket.pause();
  socket.write(requestBytes({ queries: new Array(1_500).fill('a bridge'), topk: 20, return_scores: true }));
}

const UNREAD: Readonly<Record<string, SlowKind>> = {
  'that read nothing': {
    count: 6,
    cutWithinS: STALL_S,
    begin(socket) {
      askForMuch(socket);
      // Who does not read does not hear of the end either: a byte, when it must be there, tells of it.
      let second = 0;
      return () => void (++second > STALL_S + SLACK_S && socket.write('x'));
    },
  },
  'that read nothing and go on sending': {
    count: 6,
    cutWithinS: STALL_S,
    begin(socket) {
      askForMuch(socket);
      return () => void socket.write('x');
    },
  },
};

const SLOW: Readonly<Record<string, SlowKind>> = {
  ...UNREAD,
  'that say nothing': { count: 100, cutWithinS: HEADERS_S, begin: () => () => undefined },
  'that send a byte of a header each second': {
    count: 100,
    cutWithinS: HEADERS_S,
    begin(socket) {
      socket.write('POST /retrieve HTTP/1.1\r\nx-slow: ');
      return () => void socket.write('y');
    },
  },
};

/** Each slow client is cut in its time, while others are answered. */
export const slowClients: Trial = {
  name: 'clients that are too slow',
  async run(options) {
    const kinds: Readonly<Record<string, SlowKind>> = options.patient ? SLOW : UNREAD;
    return underLoad(options.index, options, {
      // None of the large answers is to be refused.
      server: { args: ['--stall-s', `${STALL_S}`, '--max-waiting-mib', '4096'] },
      queries: await soakQueries(QUERIES),
      async during(server) {
        const faults = new Faults();
        const before = await server.sample();
        const all = Object.entries(kinds).flatMap(([name, kind]) =>
          Array.from({ length: kind.count }, () => ({ name, kind, socket: connect(server.port, '127.0.0.1') })),
        );
        const begun = performance.now();
        const cutAfter = new Map<string, number[]>(Object.keys(kinds).map((name) => [name, []]));
        const ends = all.map(({ name, kind, socket }) => {
          socket.on('error', () => undefined);
          const each = kind.begin(socket);
          const ticks = setInterval(() => {
            if (!socket.destroyed) each();
          }, 1_000);
          if (!(name in UNREAD)) socket.resume();
          return closed(socket).then(() => {
            clearInterval(ticks);
            cutAfter.get(name)!.push((performance.now() - begun) / 1000);
          });
        });
        const peak = await server.sample();
        const longest = Math.max(...Object.values(kinds).map(({ cutWithinS }) => cutWithinS));
        let waited = 0;
        while (waited < longest + 2 * SLACK_S && server.alive) {
          if ([...cutAfter.values()].reduce((sum, { length }) => sum + length, 0) === all.length) break;
          await sleep(1_000);
          waited++;
          if (waited % 10 === 0) options.onProgress?.(`${waited} s, cut: ${list(lengths(cutAfter))}`);
        }
        for (const { socket } of all) socket.destroy();
        const cutInTime = lengths(cutAfter);
        await Promise.all(ends);
        for (const [name, { count }] of Object.entries(kinds)) {
          if (cutInTime[name] !== count) faults.add(`clients ${name} not cut`, count - cutInTime[name]!);
        }
        const stalled = metricOf(await server.metrics(), 'trawl_connections_cut_total', 'stalled');
        const unread = Object.values(UNREAD).reduce((sum, { count }) => sum + count, 0);
        if (stalled !== unread) faults.add(`trawl_connections_cut_total tells ${stalled}`);
        await sleep(1_000);
        const after = await server.sample();
        return {
          counts: {
            ...Object.fromEntries(
              [...cutAfter].map(([name, seconds]) => [`${name}, cut after s`, `${seconds.length}: ${span(seconds)}`]),
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
