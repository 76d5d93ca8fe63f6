import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection, type HttpReply } from '../../bench/serve/http-connection.ts';
import { soakQueries } from '../soak/expected-answers.ts';
import { requestBytes } from '../soak/good-client.ts';
import { metricOf, type SoakServer } from '../soak/soak-server.ts';
import { movingClock } from './moving-clock.ts';
import { Faults, LOAD_CLIENTS, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
/** Offsets of the wall clock from the true time, one after another: summer time, a wrong day, a clock that was never set. */
const JUMPS_H = [1, -1, 0, 26, -26, 0, 9_000, -9_000];
const EVERY_MS = 1_000;
/** Far longer than an answer takes under this load, and shorter than any jump. */
const DEADLINE_MS = 30_000;
/** A longer Retry-After would make no sense to a client. */
const LONGEST_RETRY_AFTER_S = 60;

/** Moves the server's wall clock every second. Durations and time limits use the monotonic clock and must not change. */
export const clockJumps: Trial = {
  name: 'the clock moved by hours, days and a year every second',
  async run(options) {
    const clock = movingClock(options.folder);
    const path = join(options.folder, 'clock.log');
    const log = openSync(path, 'a');
    const faults = new Faults();
    try {
      const found = await underLoad(options.index, options, {
        server: {
          log,
          env: clock.env,
          args: ['--deadline-ms', `${DEADLINE_MS}`, '--shed-after-ms', `${DEADLINE_MS}`, '--stall-s', '30'],
        },
        queries: await soakQueries(QUERIES),
        async during(server, stopped) {
          const idle = new IdleConnection(server.port);
          const days = new Set<string>();
          const began = performance.now();
          let jumps = 0;
          let refusals = 0;
          try {
            for (let jump = 0; !stopped(); jump++) {
              const half = halfRequest(server.port);
              await half.begun;
              clock.set(JUMPS_H[jump % JUMPS_H.length]!);
              jumps++;
              const begun = performance.now();
              const reply = await half.finish();
              checkAnswer(reply, performance.now() - begun + EVERY_MS, faults);
              await idle.ask(faults);
              refusals += await impatient(server.port, faults);
              const wait = metricOf(await server.metrics(), 'trawl_queue_expected_wait_seconds');
              if (!(wait >= 0 && wait < DEADLINE_MS / 1000)) faults.add(`expected wait of ${wait} s`);
              await sleep(Math.max(0, EVERY_MS - (performance.now() - begun)));
              days.add((await dateOf(server.port)).toISOString().slice(0, 10));
            }
          } finally {
            idle.close();
          }
          if (days.size < 2 && jumps > 3) faults.add('the clock did not jump');
          await checkStages(server, (performance.now() - began) / 1000, faults);
          return {
            counts: {
              jumps,
              'different dates of answers': days.size,
              'deadlines of 1 ms that passed': refusals,
              'connections kept through all jumps': idle.opened === 1 ? 1 : 0,
              'moved by': clock.how,
            },
            faults: {},
          };
        },
      });
      const lines = checkLog(readFileSync(path, 'utf8'), faults);
      return { counts: { ...found.counts, 'log lines': lines }, faults: { ...found.faults, ...faults.counts } };
    } finally {
      closeSync(log);
    }
  },
};

/** A connection that is idle between jumps. The server must not close it because of a jump. */
class IdleConnection {
  readonly #connection: HttpConnection;
  opened = 1;

  constructor(port: number) {
    this.#connection = new HttpConnection(port);
  }

  async ask(faults: Faults): Promise<void> {
    try {
      const request = requestBytes({ queries: ['a bridge'], topk: 1 });
      const begun = performance.now();
      checkAnswer(await this.#connection.send(request, { keepAlive: true }), performance.now() - begun, faults);
    } catch {
      this.opened++;
      faults.add('an idle connection was closed by a jump');
    }
  }

  close(): void {
    this.#connection.close();
  }
}

/** Sends the first half of a request; `finish` sends the second half, after a jump. */
function halfRequest(port: number): { begun: Promise<void>; finish(): Promise<HttpReply> } {
  const whole = requestBytes({ queries: ['longest river'], topk: 1 });
  const connection = new HttpConnection(port);
  const half = whole.length - 20;
  const reply = connection.send(whole.subarray(0, half), { keepAlive: false });
  // `finish` reports a failure; without this line, an earlier failure would be an unhandled rejection.
  reply.catch(() => undefined);
  return {
    begun: sleep(20),
    async finish() {
      connection.write(whole.subarray(half));
      return reply;
    },
  };
}

/** Checks that the answer succeeded and that its Server-Timing is not longer than its client waited. */
function checkAnswer({ status, head }: HttpReply, seenMs: number, faults: Faults): void {
  if (status !== 200) faults.add(`status ${status} during a jump`);
  const total = Number(/\r\nserver-timing:.*\btotal;dur=([\d.e+-]+)/i.exec(head)?.[1]);
  if (!(total >= 0 && total <= seenMs + 1)) faults.add(`server-timing ${total} ms of ${seenMs.toFixed(1)} ms`);
}

/** Sends a request with a deadline of 1 ms. Returns 1 if the server gave it up, else 0. */
async function impatient(port: number, faults: Faults): Promise<number> {
  const queries = Array.from({ length: 256 }, (_, i) => `${Math.random()} ${i}`);
  const connection = new HttpConnection(port);
  const request = requestBytes({ queries, topk: 1 }).toString().replace('\r\n', '\r\nx-request-timeout-ms: 1\r\n');
  const { status, head } = await connection.send(Buffer.from(request), { keepAlive: false });
  if (status === 200) return 0;
  const seconds = /\r\nretry-after: *(\S+)/i.exec(head)?.[1];
  if (status !== 503) faults.add(`status ${status} after a deadline`);
  if (seconds === undefined || !/^\d+$/.test(seconds) || Number(seconds) > LONGEST_RETRY_AFTER_S) {
    faults.add(`Retry-After: ${seconds}`);
  }
  return 1;
}

async function dateOf(port: number): Promise<Date> {
  const connection = new HttpConnection(port);
  const { head } = await connection.send(Buffer.from('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n'), { keepAlive: false });
  return new Date(/\r\ndate: *([^\r]+)/i.exec(head)?.[1] ?? 0);
}

/** Checks that the time of each stage is not negative and not more than all clients together can have waited. */
async function checkStages(server: SoakServer, seconds: number, faults: Faults): Promise<void> {
  const metrics = await server.metrics();
  for (const stage of ['parse', 'embed', 'search', 'fetch', 'reply', 'total']) {
    const sum = metricOf(metrics, 'trawl_stage_seconds_sum', `"${stage}"`);
    if (!(sum >= 0 && sum <= (seconds + 5) * (LOAD_CLIENTS + 4)))
      faults.add(`${sum} s of ${stage} in ${seconds.toFixed(0)} s`);
  }
}

function checkLog(text: string, faults: Faults): number {
  // The other lines are messages for people.
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  for (const line of lines) {
    const fields = JSON.parse(line) as Record<string, unknown>;
    if (Number.isNaN(Date.parse(String(fields.time)))) faults.add(`log line with the time ${String(fields.time)}`);
    for (const [name, value] of Object.entries(fields)) {
      if (!name.endsWith('Ms')) continue;
      if (!(Number(value) >= 0 && Number(value) <= DEADLINE_MS)) faults.add(`log line with ${name} ${String(value)}`);
    }
  }
  if (lines.length === 0) faults.add('no log line');
  return lines.length;
}
