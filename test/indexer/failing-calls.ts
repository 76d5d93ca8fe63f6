import assert from 'node:assert/strict';
import { basename } from 'node:path';
import type { Ended } from '../cli/run-trawl.ts';
import type { FaultLibrary } from '../helpers/fault-library.ts';

export const [EIO, ENOSPC, EROFS] = [5, 28, 30];

/** The call of a kind at files whose path has a part, counted from 1, that fails, and the error that the command ends with. */
export type FailingCall = readonly [file: string, calls: string, at: number, errno: number, code: string];

export interface FailingCommand {
  readonly library: FaultLibrary;
  /** Absolute path of what the command makes. */
  readonly out: string;
  /** One command, with further environment variables. */
  run(environment: Record<string, string>): Promise<Ended>;
  /** Looks at what a failed command has left. */
  check(what: string): void;
}

/** Runs a command with each of the calls failing: it has to end with one line that names `out`, and with the code. */
export async function failEachCall(
  faults: readonly FailingCall[],
  { library, out, run, check }: FailingCommand,
): Promise<void> {
  for (const [file, calls, at, errno, code] of faults) {
    const what = `${calls} ${at} of ${file} fails with ${errno}`;
    const ended = await run(library.environment({ under: out, file, calls, at, do: errno }));
    assert.equal(ended.code, 1, `${what}: ended with ${ended.code}, ${ended.signal}: ${ended.stderr}`);
    assert.match(ended.stderr, new RegExp(`^trawl: .*${basename(out)}.* \\[${code}\\]\\n$`), what);
    check(what);
  }
}
