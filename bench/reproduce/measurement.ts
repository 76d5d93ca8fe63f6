import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { cacheFolder, environmentWith } from '../../src/base/options/environment.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { installedMiniLm } from '../all/bench-inputs.ts';
import { type BaselineCase, baselinePython } from '../baselines.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import { SHARED } from '../serve/serve-index.ts';

/** The encoder that ships with Trawl. */
export const BUNDLED = 'token-average-256';

/** The data sets and models of a measurement, and the programs that it runs. */
export class Measurement {
  /** An empty folder, removed at the end. */
  readonly scratch: string;
  readonly signal: AbortSignal;

  constructor(scratch: string, signal: AbortSignal) {
    this.scratch = scratch;
    this.signal = signal;
  }

  /** A file of the data sets. @throws TrawlError CORPUS_NOT_FOUND without them. */
  data(...path: string[]): string {
    if (existsSync(SHARED)) return join(SHARED, ...path);
    throw new TrawlError('CORPUS_NOT_FOUND', `The data sets are expected in ${SHARED} (docs/reproduce.md).`);
  }

  /** The checkpoint of all-MiniLM-L6-v2. @throws TrawlError MODEL_NOT_FOUND without it. */
  get checkpoint(): string {
    const checkpoint = installedMiniLm(cacheFolder('trawl'));
    if (checkpoint !== undefined) return checkpoint;
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      'all-MiniLM-L6-v2 is not installed. Install it: trawl bench baselines embed.',
    );
  }

  /** The Python of `trawl bench baselines`. @throws TrawlError MODEL_NOT_FOUND without it. */
  python(of: BaselineCase): string {
    const python = baselinePython(cacheFolder('trawl'), of);
    if (python !== undefined) return python;
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      `The baselines are not installed. Install them: trawl bench baselines ${of}.`,
    );
  }

  /** Imports all-MiniLM-L6-v2. @returns the model's folder. */
  async miniLm(precisions = 'float32'): Promise<string> {
    const model = join(this.scratch, 'all-MiniLM-L6-v2');
    await this.trawl('model', 'add', this.checkpoint, '--out', model, '--precision', precisions);
    return model;
  }

  /** Runs `trawl`. @returns what it printed. @throws TrawlError USAGE if it fails. */
  trawl(...args: string[]): Promise<string> {
    return this.run(process.execPath, [TRAWL, ...args]);
  }

  /** Runs `trawl bench`. @returns the JSON of its `--out`. */
  bench<Result>(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Result> {
    return this.#outOf([TRAWL, 'bench', ...args], environment);
  }

  /**
   * Runs a check of scripts/checks/, which checks its answers.
   *
   * @returns the JSON of its `--out`.
   * @throws TrawlError USAGE if it fails, as it does if an answer is wrong: such figures are not to be recorded.
   */
  check(name: string, ...args: string[]): Promise<unknown> {
    return this.#outOf([join(packageRoot, 'scripts', 'checks', `${name}.mjs`), ...args]);
  }

  /** The content of a JSON file of the scratch folder. */
  async json<Result>(name: string): Promise<Result> {
    return JSON.parse(await readFile(join(this.scratch, name), 'utf8'));
  }

  /** Runs a program in the scratch folder. @returns what it printed to stdout. @throws TrawlError USAGE if it fails. */
  async run(program: string, args: readonly string[]): Promise<string> {
    const child = spawn(program, args, { ...this.#place(), stdio: ['ignore', 'pipe', process.stderr] });
    const [printed] = await Promise.all([text(child.stdout), this.#ended(child)]);
    return printed;
  }

  async #outOf<Result>(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Result> {
    const out = join(this.scratch, 'result.json');
    // On stderr, because stdout is for the report of the comparison.
    const stdio = ['ignore' as const, process.stderr, process.stderr];
    await this.#ended(spawn(process.execPath, [...args, '--out', out], { ...this.#place(environment), stdio }));
    return this.json('result.json');
  }

  #place(environment: Readonly<Record<string, string>> = {}): Pick<SpawnOptions, 'cwd' | 'env' | 'signal'> {
    return { cwd: this.scratch, env: environmentWith(environment), signal: this.signal };
  }

  async #ended(child: ChildProcess): Promise<void> {
    const code = await new Promise<number | null>((done, reject) => child.on('error', reject).on('close', done));
    throwIfCancelled(this.signal);
    if (code !== 0) throw new TrawlError('USAGE', `${child.spawnargs.join(' ')} ended with exit code ${code}.`);
  }
}
