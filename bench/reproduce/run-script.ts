import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import type { ReproductionRun } from './reproduction-run.ts';

/**
 * Runs a script of `scripts/` that writes its figures to the file of `--out` and checks its answers. What it prints goes to stderr.
 *
 * @throws Error if the script fails, as it does if an answer is wrong: such figures are not to be recorded.
 */
export async function runScript(
  name: string,
  args: readonly string[],
  { file, signal }: Pick<ReproductionRun, 'file' | 'signal'>,
): Promise<void> {
  const script = join(packageRoot, 'scripts', name);
  const child = spawn(process.execPath, [script, ...args, '--out', file], {
    signal,
    // On stderr, because stdout is for the report of the comparison.
    stdio: ['ignore', process.stderr, 'inherit'],
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`scripts/${name} ended with ${code}.`);
}
