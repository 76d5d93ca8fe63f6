import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { type FaultLibrary, faultLibrary } from '../../helpers/fault-library.ts';
import { expectOk, runCommand } from '../../helpers/run-command.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { assertEqualContent, contentOf } from '../../indexer/kill-and-resume.ts';
import { bertCheckpoint, encoderCheckpoint } from './checkpoints.ts';

export interface KillIterationsTest {
  /** Empty folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly passages: number;
  /** Only the first iteration, not a second one, going back and removing old ones. Default: false. */
  readonly onlyFirst?: boolean;
  readonly onMoment?: (text: string) => void;
}

export interface KillIterationsResult {
  /** Kills of a running process; the others came too late. */
  readonly kills: number;
  /** Of these, kills at a file operation. */
  readonly atCalls: number;
  /** Loops that were completed and found equal to the undisturbed one. */
  readonly compared: number;
  /** Why there were no kills at file operations, if so. */
  readonly withoutCalls: string | undefined;
}

/** A command of a loop, undisturbed. */
interface Undisturbed {
  /** File operations in the folder of the loop. */
  readonly calls: number;
  readonly ms: number;
}

/**
 * Kills `trawl iterate` at a random time or at a random file operation, and runs the same command again until it is complete: two
 * iterations, `--back --to`, and `--prune`. After every kill the link leads to a complete index. Every loop is compared with an
 * undisturbed one, file for file.
 */
export async function killIterations(options: KillIterationsTest): Promise<KillIterationsResult> {
  const { folder, moments, seed, passages, onlyFirst = false, onMoment = () => undefined } = options;
  const random = seededRandom(seed);
  const commands = await prepare(folder, passages, onlyFirst);
  const library = faultLibrary(folder);
  const reference = join(folder, 'loop-whole');
  const undisturbed: Undisturbed[] = [];
  for (const command of commands)
    undisturbed.push(await runUndisturbed(command(reference), library, reference, folder));
  const expected = stateOf(reference);
  let [kills, atCalls, compared] = [0, 0, 0];
  let moment = 0;
  for (let chain = 0; moment < moments; chain++) {
    const loop = join(folder, `loop-${chain}-`);
    for (const [number, command] of commands.entries()) {
      const { calls, ms: usualMs } = undisturbed[number]!;
      for (let left = 1 + Math.floor(random() * 3); left > 0 && moment < moments; left--, moment++) {
        const atCall = !('missing' in library) && moment % 2 === 1;
        const at = 1 + Math.floor(random() * calls);
        const ms = Math.floor(random() * usualMs);
        const ended = await runCommand(
          command(loop),
          atCall ? { env: library.environment({ under: loop, at, do: 'kill' }) } : { killAfterMs: ms },
        );
        const killed = ended.signal === 'SIGKILL';
        if (killed) kills++;
        if (killed && atCall) atCalls++;
        const when = atCall ? `at call ${at} of ${calls}` : `after ${ms} ms`;
        onMoment(`${moment + 1}: command ${number + 1}, ${when}: ${killed ? 'killed' : `ended with ${ended.code}`}`);
        checkServed(loop, number);
        if (!killed) break;
      }
      expectOk(await runCommand(command(loop)));
      checkServed(loop, number + 1);
    }
    const found = stateOf(loop);
    const what = `chain ${chain} of seed ${seed}`;
    assert.deepEqual([found.current, found.history], [expected.current, expected.history], what);
    assertEqualContent(found.content, expected.content, what);
    compared++;
    rmSync(loop, { recursive: true });
  }
  const withoutCalls = 'missing' in library ? library.missing : undefined;
  return { kills, atCalls, compared, withoutCalls };
}

type CommandOf = (loop: string) => readonly string[];

/** The index that the loops begin with, the checkpoints, and the commands of a loop. */
async function prepare(folder: string, passages: number, onlyFirst: boolean): Promise<CommandOf[]> {
  const [corpus, questions, start] = ['corpus.jsonl', 'questions.jsonl', 'start'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const lines = (count: number, line: (i: number) => object): string =>
    Array.from({ length: count }, (_, i) => `${JSON.stringify(line(i))}\n`).join('');
  writeFileSync(
    corpus,
    lines(passages, (i) => ({ id: `p${i}`, contents: `word${i % 97} word${i % 89} word${i % 83}` })),
  );
  writeFileSync(
    questions,
    lines(20, (i) => ({ id: i, question: `word${i} word${i}`, gold_ids: [`p${i}`] })),
  );
  expectOk(await runCommand(['index', corpus, '--out', start, '--quiet']));
  const iterate =
    (checkpoint: string): CommandOf =>
    (loop) => [
      ...['iterate', checkpoint, '--root', loop, '--from', start, '--corpus', corpus, '--eval', questions],
      ...['--max-recall-drop', '1', '--shard-rows', String(Math.ceil(passages / 2)), '--checkpoint-seconds', '0'],
      ...['--triage', '--triage-depth', '2', '--triage-sample', '10', '--triage-max-drop', '1'],
      ...['--encoder-threads', '1', '--quiet'],
    ];
  const first = iterate(encoderCheckpoint(folder, 'first', 'q: '));
  if (onlyFirst) return [first];
  return [
    first,
    iterate(bertCheckpoint(folder, 'second')),
    (loop) => ['iterate', '--back', '--to', '0', '--root', loop],
    (loop) => ['iterate', '--prune', '--keep', '2', '--root', loop],
  ];
}

async function runUndisturbed(
  command: readonly string[],
  library: FaultLibrary | { readonly missing: string },
  loop: string,
  folder: string,
): Promise<Undisturbed> {
  const count = join(folder, 'calls');
  const env = 'missing' in library ? {} : library.environment({ under: loop, count });
  const begun = performance.now();
  expectOk(await runCommand(command, { env }));
  return { ms: performance.now() - begun, calls: 'missing' in library ? 0 : library.count(count) };
}

/** What is served is a complete index, as soon as the loop has begun. `done`: commands that have run to their end. */
function checkServed(loop: string, done: number): void {
  let served: string;
  try {
    served = readlinkSync(join(loop, 'current'));
  } catch (error) {
    assert.equal(done, 0, `the link is gone: ${(error as Error).message}`);
    return;
  }
  assert.ok(openIndexDirectory(join(loop, 'current')).manifest.rows > 0, served);
}

interface LoopState {
  readonly current: string;
  readonly history: unknown;
  readonly content: ReadonlyMap<string, Buffer | string>;
}

/** All files of a loop but its locks, without the time at which an iteration was published. */
function stateOf(loop: string): LoopState {
  const history = JSON.parse(readFileSync(join(loop, 'iterations.json'), 'utf8')) as {
    iterations: { publishedAt: unknown }[];
  };
  for (const iteration of history.iterations) iteration.publishedAt = iteration.publishedAt === null ? null : 'a time';
  const iterations = join(loop, 'iterations');
  mkdirSync(iterations, { recursive: true });
  return { current: readlinkSync(join(loop, 'current')), history, content: contentOf(iterations) };
}
