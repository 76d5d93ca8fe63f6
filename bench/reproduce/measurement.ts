import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { throwIfCancelled } from '../../src/abort.ts';
import { TrawlError } from '../../src/errors.ts';
import { cacheFolder } from '../../src/options/cache-folder.ts';
import { environmentWith } from '../../src/options/resolve-options.ts';
import { packageRoot } from '../../src/package-root.ts';
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
  async bench<Result>(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Result> {
    await this.run(process.execPath, [TRAWL, 'bench', ...args, '--out', 'result.json'], environment);
    return this.json('result.json');
  }

  /**
   * Runs a script of `scripts/`, which checks its answers.
   *
   * @returns the JSON of its `--out`.
   * @throws TrawlError USAGE if it fails, as it does if an answer is wrong: such figures are not to be recorded.
   */
  async script(name: string, ...args: string[]): Promise<unknown> {
    await this.run(process.execPath, [
      join(packageRoot, 'scripts', name),
      ...args,
      '--out',
      join(this.scratch, 'result.json'),
    ]);
    return this.json('result.json');
  }

  /** The content of a JSON file of the scratch folder. */
  async json<Result>(name: string): Promise<Result> {
    return JSON.parse(await readFile(join(this.scratch, name), 'utf8'));
  }

  /** Runs a program in the scratch folder, which may also print to stderr. @returns what it printed to stdout. */
  async run(
    program: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const child = spawn(program, args, {
      cwd: this.scratch,
      signal: this.signal,
      env: environmentWith(environment),
      stdio: ['ignore', 'pipe', process.stderr],
    });
    const ended = new Promise<number | null>((done, reject) => child.on('error', reject).on('close', done));
    const [printed, code] = await Promise.all([text(child.stdout), ended]);
    throwIfCancelled(this.signal);
    if (code !== 0)
      throw new TrawlError('USAGE', `${program} ${args.join(' ')} ended with exit code ${code}.\n${printed}`);
    return printed;
  }
}
