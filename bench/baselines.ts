import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import { packageRoot } from '../src/package-root.ts';
import type { BaselineName } from './bench-engine.ts';

/** The Python scripts and what they need. */
const FOLDER = join(packageRoot, 'bench', 'baselines');
const REQUIREMENTS = join(FOLDER, 'requirements.txt');

export function baselineScript(name: BaselineName): string {
  return join(FOLDER, `flat_${name}.py`);
}

/** The environment's folder below the cache: a new one for new requirements, shared by all checkouts. */
export function baselineFolder(cache: string): string {
  const version = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(cache, `baselines-${version}`);
}

/** The interpreter of the environment, undefined until `trawl bench baselines` has made it. */
export function baselinePython(cache: string): string | undefined {
  if (!existsSync(REQUIREMENTS)) return undefined;
  const folder = baselineFolder(cache);
  return existsSync(join(folder, '.complete')) ? join(folder, 'bin', 'python') : undefined;
}

/**
 * Makes the environment unless it is there. Resolves to its interpreter.
 *
 * @throws TrawlError USAGE naming what is missing.
 */
export async function installBaselines(
  cache: string,
  options: { python: string; signal: AbortSignal; note(text: string): void },
): Promise<string> {
  const there = baselinePython(cache);
  if (there !== undefined) return there;
  if (!existsSync(REQUIREMENTS))
    throw new TrawlError('USAGE', `${REQUIREMENTS} is not there: baselines come with a checkout.`);
  const folder = baselineFolder(cache);
  const python = join(folder, 'bin', 'python');
  options.note(`Installing the baselines into ${folder} (once)`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(cache, { recursive: true });
  const run = (command: string, args: string[], onFailure: string): Promise<void> =>
    runCommand(command, args, options.signal, onFailure);
  await run(
    options.python,
    ['-m', 'venv', folder],
    'Python 3 with venv is needed (Debian: apt-get install python3-venv)',
  );
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS];
  await run(python, install, 'pip could not install the baselines');
  await writeFile(join(folder, '.complete'), '');
  return python;
}

async function runCommand(command: string, args: string[], signal: AbortSignal, onFailure: string): Promise<void> {
  // Its output is for the person, not for a pipe.
  const child = spawn(command, args, { signal, stdio: ['ignore', process.stderr, process.stderr] });
  const problem = await new Promise<string | undefined>((resolve, reject) => {
    child.on('error', (error) => (error.name === 'AbortError' ? reject(error) : resolve(error.message)));
    child.on('close', (code) => resolve(code === 0 ? undefined : `it ended with ${code}`));
  });
  if (problem !== undefined) throw new TrawlError('USAGE', `${onFailure}: ${command} ${args.join(' ')}: ${problem}.`);
}
