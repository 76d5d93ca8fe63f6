import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type FaultLibrary, faultLibrary } from './fault-library.ts';
import { expectOk, runCommand } from './run-command.ts';

/** A command that writes files and resumes after a kill. */
export interface KillCase {
  /** For messages. */
  readonly name: string;
  /** The command whose files have paths that begin with `prefix`. */
  command(prefix: string): string[];
  /** What follows the prefix in the paths of all files that a complete run leaves. */
  readonly files: readonly string[];
  /** What follows the prefix in the path of the file that is there if there is something to resume. */
  readonly stateFile: string;
  /** Whether a run that is complete refuses to run again, with OUTPUT_EXISTS. */
  readonly refusesToRepeat?: boolean;
}

export interface KillRunsTest {
  /** Folder to work in. */
  readonly folder: string;
  readonly cases: readonly KillCase[];
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly onMoment?: (text: string) => void;
}

export interface KillRunsResult {
  /** Kills of a running process; the others came too late. */
  readonly kills: number;
  /** Of these, kills at a file operation. */
  readonly atCalls: number;
  /** Runs that resumed an earlier run. */
  readonly resumed: number;
  /** Outputs that were completed and found equal to the undisturbed one. */
  readonly compared: number;
  /** Why there were no kills at file operations, if so. */
  readonly withoutCalls: string | undefined;
}

/**
 * Kills commands at a random time or at a random file operation, and runs the same command again until it is complete. Every
 * output is compared with that of an undisturbed run.
 */
export async function killRuns(options: KillRunsTest): Promise<KillRunsResult> {
  const { folder, cases, moments, seed, random, onMoment = () => undefined } = options;
  const library = faultLibrary(folder);
  let [kills, atCalls, resumed, compared] = [0, 0, 0, 0];
  let moment = 0;
  const undisturbed = new Map<KillCase, Undisturbed>();
  for (let chain = 0; moment < moments; chain++) {
    const killCase = cases[chain % cases.length]!;
    if (!undisturbed.has(killCase)) {
      undisturbed.set(killCase, await runUndisturbed(killCase, library, join(folder, `whole${chain}-`)));
    }
    const { calls, ms: usualMs, contents } = undisturbed.get(killCase)!;
    const prefix = join(folder, `out${chain}-`);
    const command = killCase.command(prefix);
    const countResumed = (): void => {
      if (existsSync(prefix + killCase.stateFile)) resumed++;
    };
    for (let left = 1 + Math.floor(random() * 3); left > 0 && moment < moments; left--, moment++) {
      const atCall = !('missing' in library) && moment % 2 === 1;
      const at = 1 + Math.floor(random() * calls);
      const ms = Math.floor(random() * usualMs);
      countResumed();
      const ended = await runCommand(
        command,
        atCall ? { env: library.environment({ under: prefix, at, do: 'kill' }) } : { killAfterMs: ms },
      );
      const killed = ended.signal === 'SIGKILL';
      if (killed) kills++;
      if (killed && atCall) atCalls++;
      onMoment(
        `${moment + 1}: ${killCase.name} ${atCall ? `at call ${at} of ${calls}` : `after ${ms} ms`}: ${killed ? 'killed' : `ended with ${ended.code}`}`,
      );
      if (!killed) break;
    }
    countResumed();
    const ended = await runCommand(command);
    if (!(killCase.refusesToRepeat === true && /\[OUTPUT_EXISTS\]/.test(ended.stderr))) expectOk(ended);
    assert.deepEqual(contentsOf(folder, prefix), contents, `${killCase.name} differs, chain ${chain} of seed ${seed}`);
    compared++;
  }
  const withoutCalls = 'missing' in library ? library.missing : undefined;
  return { kills, atCalls, resumed, compared, withoutCalls };
}

interface Undisturbed {
  /** File operations on the output. */
  readonly calls: number;
  readonly ms: number;
  readonly contents: Readonly<Record<string, string>>;
}

async function runUndisturbed(
  killCase: KillCase,
  library: FaultLibrary | { readonly missing: string },
  prefix: string,
): Promise<Undisturbed> {
  const folder = join(prefix, '..');
  const count = join(folder, 'calls');
  const env = 'missing' in library ? {} : library.environment({ under: prefix, count });
  const begun = performance.now();
  expectOk(await runCommand(killCase.command(prefix), { env }));
  const ms = performance.now() - begun;
  const calls = 'missing' in library ? 0 : library.count(count);
  const contents = contentsOf(folder, prefix);
  assert.deepEqual(Object.keys(contents), [...killCase.files].sort());
  return { calls, ms, contents };
}

/** The files whose paths begin with `prefix`, by the rest of the path; without the prefix and its last part in their contents. */
function contentsOf(folder: string, prefix: string): Record<string, string> {
  const names = readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => path.startsWith(prefix))
    .sort();
  return Object.fromEntries(
    names.map((path) => {
      const content = readFileSync(path, 'latin1').replaceAll(prefix, 'PREFIX').replaceAll(basename(prefix), 'PREFIX');
      return [path.slice(prefix.length), content];
    }),
  );
}
