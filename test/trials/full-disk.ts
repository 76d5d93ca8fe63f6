import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { smallDisk } from '../helpers/small-disk.ts';
import { soakQueries } from '../soak/expected-answers.ts';
import { metricOf } from '../soak/soak-server.ts';
import { Faults, Skip, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const FULL_DEVICE = '/dev/full';
const DISK_KB = 1_024;
/** A file that fills most of the disk; removing it makes space again. */
const BALLAST_KB = 768;
const FULL_FOR_MS = 1_000;
const AGAIN_MS = 15_000;
/** The disk must be full within this time. */
const FILL_MS = 60_000;

export const logOnFullDevice: Trial = {
  name: 'no space for the log from the start',
  async run(options) {
    if (!existsSync(FULL_DEVICE)) throw new Skip(`${FULL_DEVICE} does not exist`);
    const log = openSync(FULL_DEVICE, 'w');
    try {
      return await underLoad(options.index, options, {
        server: { log },
        queries: await soakQueries(QUERIES),
        during: async () => ({ counts: {}, faults: {} }),
        async after(server, tally) {
          const lines = async () => metricOf(await server.metrics(), 'trawl_dropped_lines_total', 'log');
          // Other lines count too, and the last lines are written shortly after their answers.
          let dropped = await lines();
          const until = performance.now() + AGAIN_MS;
          for (; dropped < tally.answered && performance.now() < until; dropped = await lines()) await sleep(50);
          const faults: Record<string, number> =
            dropped >= tally.answered ? {} : { 'lines neither written nor counted': 1 };
          return { counts: { 'lines dropped and counted': dropped }, faults };
        },
      });
    } finally {
      closeSync(log);
    }
  },
};

/** Log and record are on a disk of 1 MiB, which fills up and later has space again. */
export const fullDisk: Trial = {
  name: 'the disk with the log and the --record file fills up, then has space again',
  async run(options) {
    const disk = join(options.folder, 'disk');
    await mkdir(disk);
    const mounted = smallDisk(disk, DISK_KB);
    if ('missing' in mounted) throw new Skip(mounted.missing);
    const [ballast, log, record] = ['ballast', 'log', 'record.jsonl'].map((name) => join(disk, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(ballast, Buffer.alloc(BALLAST_KB * 1024));
    const file = openSync(log, 'a');
    try {
      let answered = { requests: 0, queries: 0 };
      let dropped = { log: Number.NaN, record: Number.NaN };
      const found = await underLoad(options.index, options, {
        server: { log: file, args: ['--record', record] },
        queries: await soakQueries(QUERIES),
        async during(server, stopped) {
          const faults = new Faults();
          const lines = async (what: string): Promise<number> =>
            metricOf(await server.metrics(), 'trawl_dropped_lines_total', what);
          const until = performance.now() + FILL_MS;
          while (((await lines('log')) === 0 || (await lines('record')) === 0) && performance.now() < until) {
            await sleep(100);
          }
          if (performance.now() >= until) faults.add('the disk never filled up');
          await sleep(FULL_FOR_MS);
          while (!stopped()) await sleep(50);
          const sizes = [log, record].map((path) => readFileSync(path).length);
          rmSync(ballast);
          const grown = (): boolean => [log, record].every((path, i) => readFileSync(path).length > sizes[i]!);
          const again = performance.now() + AGAIN_MS;
          while (!grown() && performance.now() < again) await sleep(50);
          if (!grown()) faults.add('nothing was written when the disk had space again');
          return { counts: {}, faults: faults.counts };
        },
        async after(server, tally) {
          // The last lines of the log and the record are written after their answers.
          await sleep(2_000);
          const metrics = await server.metrics();
          const of = (what: string): number => metricOf(metrics, 'trawl_dropped_lines_total', what);
          dropped = { log: of('log'), record: of('record') };
          answered = { requests: tally.answered, queries: tally.queries };
          return { counts: {}, faults: {} };
        },
      });
      const faults = new Faults();
      const logged = linesOf(log);
      const recorded = linesOf(record);
      const loggedAnswers = logged.whole.filter((line) => line.includes('"msg":"retrieved"')).length;
      if (recorded.torn > 0) faults.add('torn lines in the record', recorded.torn);
      // The disk may truncate a line of the log, but the next line must not continue it.
      if (logged.mixed > 0) faults.add('truncated lines of the log that another line continues', logged.mixed);
      if (recorded.whole.length + dropped.record !== answered.queries) {
        faults.add(
          'queries neither recorded nor counted',
          Math.abs(recorded.whole.length + dropped.record - answered.queries),
        );
      }
      if (loggedAnswers + dropped.log < answered.requests) faults.add('log lines neither written nor counted');
      return {
        counts: {
          ...found.counts,
          'log lines written': logged.whole.length,
          'truncated by the full disk': logged.torn,
          'log lines dropped and counted': dropped.log,
          'queries recorded': recorded.whole.length,
          'queries dropped and counted': dropped.record,
        },
        faults: { ...found.faults, ...faults.counts },
      };
    } finally {
      closeSync(file);
      mounted.unmount();
    }
  },
};

/** Of the lines that begin as JSON: the whole ones, the number of torn ones, and how many of these another line continues. */
function linesOf(path: string): { whole: string[]; torn: number; mixed: number } {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'));
  const whole = lines.filter(isJson);
  const torn = lines.filter((line) => !isJson(line));
  return { whole, torn: torn.length, mixed: torn.filter((line) => line.lastIndexOf('{"level"') > 0).length };
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
