import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection, type HttpReply } from '../../bench/http-connection.ts';
import { soakQueries } from '../soak/expected-answers.ts';
import { requestBytes } from '../soak/good-client.ts';
import { metricOf, type SoakServer } from '../soak/soak-server.ts';
import { movingClock } from './moving-clock.ts';
import { Faults, LOAD_CLIENTS, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
/** Of the wall clock, from the true time, in turn: an hour, a summer time, days, a year, a clock that was never set. */
const JUMPS_H = [1, -1, 0, 26, -26, 0, 9_000, -9_000];
const EVERY_MS = 1_000;
/** Far more than an answer takes under this load, and less than any jump. */
const DEADLINE_MS = 30_000;
/** Of a refusal: seconds that make sense to a client. */
const LONGEST_RETRY_AFTER_S = 60;

/** The wall clock of the server is moved each second; what lasts is measured by another one and must not notice. */
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
            for (let turn = 0; !stopped(); turn++) {
              const half = halfRequest(server.port);
              await half.begun;
              clock.set(JUMPS_H[turn % JUMPS_H.length]!);
              jumps++;
              const begun = performance.now();
              const reply = await half.finish();
              checkAnswer(reply, performance.now() - begun + EVERY_MS, faults);
              await idle.ask(faults);
              refusals += await impatient(server.port, faults);
              const wait = metricOf(await server.metrics(), 'trawl_queue_expected_wait_seconds');
              if (!(wait >= 0 && wait < DEADLINE_MS / 1000)) faults.add(`an expected wait of ${wait} s`);
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

/** A connection that rests between two jumps: it may be kept for an hour by the right clock. */
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

/** A request whose second half comes after a jump. */
function halfRequest(port: number): { begun: Promise<void>; finish(): Promise<HttpReply> } {
  const whole = requestBytes({ queries: ['longest river'], topk: 1 });
  const connection = new HttpConnection(port);
  const half = whole.length - 20;
  const reply = connection.send(whole.subarray(0, half), { keepAlive: false });
  // It is awaited by `finish`; a failure before that is none unheard.
  reply.catch(() => undefined);
  return {
    begun: sleep(20),
    async finish() {
      connection.write(whole.subarray(half));
      return reply;
    },
  };
}

/** Times that an answer tells have to be within those that its client saw. */
function checkAnswer({ status, head }: HttpReply, seenMs: number, faults: Faults): void {
  if (status !== 200) faults.add(`status ${status} beside a jump`);
  const told = Number(/\r\nserver-timing:.*\btotal;dur=([\d.e+-]+)/i.exec(head)?.[1]);
  if (!(told >= 0 && told <= seenMs + 1)) faults.add(`server-timing tells ${told} ms of ${seenMs.toFixed(1)}`);
}

/** Gives a request a millisecond; 1 where it was given up. */
async function impatient(port: number, faults: Faults): Promise<number> {
  const queries = Array.from({ length: 256 }, (_, i) => `${Math.random()} ${i}`);
  const connection = new HttpConnection(port);
  const request = requestBytes({ queries, topk: 1 }).toString().replace('\r\n', '\r\nx-request-timeout-ms: 1\r\n');
  const { status, head } = await connection.send(Buffer.from(request), { keepAlive: false });
  if (status === 200) return 0;
  const seconds = /\r\nretry-after: *(\S+)/i.exec(head)?.[1];
  if (status !== 503) faults.add(`status ${status} for a deadline`);
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

/** The sums of the stages: not negative, and not more than all clients together were there. */
async function checkStages(server: SoakServer, seconds: number, faults: Faults): Promise<void> {
  const metrics = await server.metrics();
  for (const stage of ['parse', 'embed', 'search', 'fetch', 'reply', 'total']) {
    const sum = metricOf(metrics, 'trawl_stage_seconds_sum', `"${stage}"`);
    if (!(sum >= 0 && sum <= (seconds + 5) * (LOAD_CLIENTS + 4)))
      faults.add(`${sum} s of ${stage} in ${seconds.toFixed(0)} s`);
  }
}

function checkLog(text: string, faults: Faults): number {
  // Between them are lines for a person, as the one that says what it stops for.
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  for (const line of lines) {
    const fields = JSON.parse(line) as Record<string, unknown>;
    if (Number.isNaN(Date.parse(String(fields.time)))) faults.add(`a log line of the time ${String(fields.time)}`);
    for (const [name, value] of Object.entries(fields)) {
      if (!name.endsWith('Ms')) continue;
      if (!(Number(value) >= 0 && Number(value) <= DEADLINE_MS)) faults.add(`a log line with ${name} ${String(value)}`);
    }
  }
  if (lines.length === 0) faults.add('no log line');
  return lines.length;
}
