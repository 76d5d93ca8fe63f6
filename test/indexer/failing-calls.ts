import assert from 'node:assert/strict';
import { basename } from 'node:path';
import type { Ended } from '../cli/run-trawl.ts';
import type { FaultLibrary } from '../helpers/fault-library.ts';

export const [EIO, ENOSPC, EROFS] = [5, 28, 30];

/**
 * A file operation that fails, and the code of the error that the command ends with: the `at`-th of the `calls` to files
 * whose path contains `file`, counted from 1.
 */
export type FailingCall = readonly [file: string, calls: string, at: number, errno: number, code: string];

export interface FailingCommand {
  readonly library: FaultLibrary;
  /** Absolute path of the index. */
  readonly out: string;
  /** Runs the command with additional environment variables. */
  run(environment: Record<string, string>): Promise<Ended>;
  /** Checks what a failed command left. */
  check(what: string): void;
}

/** Runs a command once for each failing call. It must end with one line that names `out`, and with the code. */
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
