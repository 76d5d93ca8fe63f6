import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type FaultLibrary, faultLibrary } from '../helpers/fault-library.ts';
import { expectOk, runCommand } from '../helpers/run-command.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

export interface KillSearchTest {
  /** Empty folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly passages: number;
  readonly onMoment?: (text: string) => void;
}

export interface KillSearchResult {
  /** Kills of a running process; the others came too late. */
  readonly kills: number;
  /** Of these, kills at a file operation. */
  readonly atCalls: number;
  /** Runs that resumed behind queries of an earlier run. */
  readonly resumed: number;
  /** Outputs that were completed and found equal to the undisturbed one. */
  readonly compared: number;
  /** Why there were no kills at file operations, if so. */
  readonly withoutCalls: string | undefined;
}

/** Outputs and options of a bulk search. */
const CASES: readonly { readonly files: readonly string[]; readonly args: readonly string[] }[] = [
  { files: ['hits.parquet'], args: ['--k', '100'] },
  { files: ['rows.npy', 'scores.npy'], args: ['--k', '20'] },
  { files: ['hits.jsonl'], args: ['--k', '10', '--shard', '1/2'] },
  { files: ['hits.run'], args: ['--k', '10', '--mode', 'bm25'] },
];

/**
 * Kills bulk searches at a random time or at a random file operation, and runs the same command again until each is complete. Every
 * output is compared with that of an undisturbed run.
 */
export async function killSearches(options: KillSearchTest): Promise<KillSearchResult> {
  const { folder, moments, seed, passages, onMoment = () => undefined } = options;
  const random = seededRandom(seed);
  const [corpus, index, queries] = ['corpus.jsonl', 'ix', 'queries.jsonl'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(corpus, linesOf(passages, random, 'contents'));
  writeFileSync(queries, linesOf(4 * passages, random, 'question'));
  expectOk(await runCommand(['index', corpus, '--out', index, '--model', 'token-average-256', '--bm25', '--quiet']));
  const library = faultLibrary(folder);
  let [kills, atCalls, resumed, compared] = [0, 0, 0, 0];
  let moment = 0;
  const undisturbed = new Map<number, Undisturbed>();
  for (let chain = 0; moment < moments; chain++) {
    const number = chain % CASES.length;
    const { files, args } = CASES[number]!;
    const command = (out: string): string[] => {
      const [first, second] = files.map((name) => join(folder, `${out}-${name}`));
      const scores = second === undefined ? [] : ['--scores-out', second];
      return ['search', index, '--queries', queries, '--checkpoint-seconds', '0', ...args, '--out', first!, ...scores];
    };
    if (!undisturbed.has(number))
      undisturbed.set(number, await runUndisturbed(command('whole'), library, folder, files));
    const { calls, ms: usualMs, contents } = undisturbed.get(number)!;
    const out = `out${chain}`;
    for (let left = 1 + Math.floor(random() * 3); left > 0 && moment < moments; left--, moment++) {
      const atCall = !('missing' in library) && moment % 2 === 1;
      const at = 1 + Math.floor(random() * calls);
      const ms = Math.floor(random() * usualMs);
      const under = join(folder, `${out}-`);
      const ended = await runCommand(
        command(out),
        atCall ? { env: library.environment({ under, at, do: 'kill' }) } : { killAfterMs: ms },
      );
      const killed = ended.signal === 'SIGKILL';
      if (killed) kills++;
      if (killed && atCall) atCalls++;
      if (/^resuming after/m.test(ended.stderr)) resumed++;
      onMoment(
        `${moment + 1}: ${files[0]} ${atCall ? `at call ${at} of ${calls}` : `after ${ms} ms`}: ${killed ? 'killed' : `ended with ${ended.code}`}`,
      );
      if (!killed) break;
    }
    const ended = await runCommand(command(out));
    expectOk(ended);
    if (/^resuming after/m.test(ended.stderr)) resumed++;
    const left = readdirSync(folder).filter((name) => name.startsWith(`${out}-`));
    const expected = [...files, `${files[0]}.report.json`].map((name) => `${out}-${name}`);
    assert.deepEqual(left.sort(), expected.sort(), `chain ${chain} of seed ${seed}`);
    for (const [i, name] of files.entries()) {
      const found = readFileSync(join(folder, `${out}-${name}`));
      assert.ok(found.equals(contents[i]!), `${basename(name)} differs, chain ${chain} of seed ${seed}`);
    }
    compared++;
  }
  const withoutCalls = 'missing' in library ? library.missing : undefined;
  return { kills, atCalls, resumed, compared, withoutCalls };
}

interface Undisturbed {
  /** File operations on the output. */
  readonly calls: number;
  readonly ms: number;
  readonly contents: readonly Buffer[];
}

async function runUndisturbed(
  command: readonly string[],
  library: FaultLibrary | { readonly missing: string },
  folder: string,
  files: readonly string[],
): Promise<Undisturbed> {
  const count = join(folder, 'calls');
  const env = 'missing' in library ? {} : library.environment({ under: join(folder, 'whole-'), count });
  const begun = performance.now();
  expectOk(await runCommand(command, { env }));
  const ms = performance.now() - begun;
  const calls = 'missing' in library ? 0 : library.count(count);
  return { calls, ms, contents: files.map((name) => readFileSync(join(folder, `whole-${name}`))) };
}

function linesOf(count: number, random: () => number, column: string): string {
  const words = Array.from({ length: 300 }, (_, i) => `word${i.toString(36)}`);
  return Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: 12 }, () => words[Math.floor(random() * words.length)]).join(' ');
    const id = i % 5 === 0 ? 'again' : `x${i}`;
    return `${JSON.stringify({ id, [column]: text, ...(i % 2 === 0 ? { round_index: i % 7 } : {}) })}\n`;
  }).join('');
}
