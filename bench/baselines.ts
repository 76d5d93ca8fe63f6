import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TrawlError } from '../src/base/errors.ts';
import { packageRoot } from '../src/base/package-root.ts';
import { installOnce, isInstalled } from './install-once.ts';
import { EngineUnavailable, ScriptProcess } from './script-process.ts';

/** Cases with Python baselines. Each has its own environment, because torch takes 6 GB. */
export const BASELINE_CASES = ['flat', 'embed', 'serve', 'bm25'] as const;
export type BaselineCase = (typeof BASELINE_CASES)[number];

/** The Python scripts and their requirements. */
const FOLDER = join(packageRoot, 'bench', 'baselines');
const REQUIREMENTS: Readonly<Record<BaselineCase, string>> = {
  flat: join(FOLDER, 'requirements.txt'),
  embed: join(FOLDER, 'requirements-embed.txt'),
  serve: join(FOLDER, 'requirements-serve.txt'),
  bm25: join(FOLDER, 'requirements-bm25.txt'),
};

/** Cases whose environment also has the packages of another one, so that torch is not installed twice. */
const BUILT_ON: Readonly<Partial<Record<BaselineCase, BaselineCase>>> = { serve: 'embed' };

/**
 * Starts bench/baselines/SCRIPT.py.
 *
 * @throws EngineUnavailable if the installation has no scripts.
 */
export function openBaselineScript<Reply extends object>(
  script: string,
  name: string,
  { python, threads }: { readonly python: string; readonly threads: number },
): ScriptProcess<Reply> {
  const path = join(FOLDER, `${script}.py`);
  if (!existsSync(path)) throw new EngineUnavailable(`${path} does not exist: baselines come with a checkout`);
  return new ScriptProcess<Reply>(name, python, ['-B', path, String(threads)]);
}

/**
 * The environment's folder in the cache. It depends on the requirements alone, so checkouts share it.
 *
 * @internal Exported for tests.
 */
export function baselineFolder(cache: string, of: BaselineCase): string {
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS[of]));
  const base = BUILT_ON[of];
  if (base !== undefined) hash.update(readFileSync(REQUIREMENTS[base]));
  const version = hash.digest('hex').slice(0, 12);
  return join(cache, `baselines-${of === 'flat' ? '' : `${of}-`}${version}`);
}

/** The environment's Python, or undefined if `trawl bench baselines` has not installed it yet. */
export function baselinePython(cache: string, of: BaselineCase): string | undefined {
  const base = BUILT_ON[of];
  if (!existsSync(REQUIREMENTS[of]) || (base !== undefined && baselinePython(cache, base) === undefined))
    return undefined;
  const folder = baselineFolder(cache, of);
  return isInstalled(folder) ? join(folder, 'bin', 'python') : undefined;
}

/**
 * Installs the environment if it is missing, after any other process that installs it. Resolves to its Python.
 *
 * @throws TrawlError USAGE if Python, venv or a package is missing.
 */
export async function installBaselines(
  cache: string,
  of: BaselineCase,
  options: { python: string; signal: AbortSignal; note(text: string): void },
): Promise<string> {
  const installed = baselinePython(cache, of);
  if (installed !== undefined) return installed;
  const requirements = REQUIREMENTS[of];
  if (!existsSync(requirements))
    throw new TrawlError('USAGE', `${requirements} does not exist: baselines come with a checkout.`);
  const base = BUILT_ON[of];
  const basePython = base === undefined ? undefined : await installBaselines(cache, base, options);
  const folder = baselineFolder(cache, of);
  const python = join(folder, 'bin', 'python');
  const size = of === 'embed' ? '; torch is large: up to 6 GB' : '';
  const run = (command: string, args: string[], onFailure: string): Promise<void> =>
    runCommand(command, args, options.signal, onFailure);
  await installOnce(folder, options, async () => {
    options.note(`Installing the baselines into ${folder} (once${size})`);
    await run(
      options.python,
      ['-m', 'venv', folder],
      'Python 3 with venv is needed (Debian: apt-get install python3-venv)',
    );
    if (basePython !== undefined) await shareSitePackages(dirname(dirname(basePython)), folder);
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
    await run(python, install, 'pip could not install the baselines');
  });
  return python;
}

/** Makes the packages of `from` importable in `to`, after its own. */
async function shareSitePackages(from: string, to: string): Promise<void> {
  const [version] = await readdir(join(to, 'lib'));
  const sitePackages = (folder: string): string => join(folder, 'lib', version!, 'site-packages');
  await writeFile(join(sitePackages(to), 'shared.pth'), `${sitePackages(from)}\n`);
}

async function runCommand(command: string, args: string[], signal: AbortSignal, onFailure: string): Promise<void> {
  // On stderr, because stdout may be a pipe.
  const child = spawn(command, args, { signal, stdio: ['ignore', process.stderr, process.stderr] });
  const problem = await new Promise<string | undefined>((resolve, reject) => {
    child.on('error', (error) => (error.name === 'AbortError' ? reject(error) : resolve(error.message)));
    child.on('close', (code) => resolve(code === 0 ? undefined : `exit code ${code}`));
  });
  if (problem !== undefined) throw new TrawlError('USAGE', `${onFailure}: ${command} ${args.join(' ')}: ${problem}.`);
}
