import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { environmentWith } from '../../src/base/options/environment.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { TRAWL } from './serve-engine.ts';

/** Real data, if it is beside the checkout. */
export const SHARED = join(packageRoot, '..', 'shared', 'data');
const SAMPLE_CORPUS = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');

export interface ServedIndexOptions {
  /** An index of the corpus. Undefined: it is built in the cache folder. */
  readonly index: string | undefined;
  /** The encoder. Undefined: the index's. */
  readonly model: string | undefined;
  /** A file of JSON lines. */
  readonly corpus: string | undefined;
  readonly cache: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** The given index, or the index of the corpus in the cache folder. Builds the latter if it is missing. */
export async function servedIndex({ index, model, corpus, cache, signal, note }: ServedIndexOptions): Promise<string> {
  if (index !== undefined) return resolve(index);
  if (model === undefined) {
    throw new TrawlError('USAGE', '`trawl bench serve` needs --model, an encoder, or --index, an index.');
  }
  const { identity, folder } = await readModelFolder(model);
  const out = join(cache, `serve-index-${identity.sha256.slice(0, 12)}`);
  await mkdir(cache, { recursive: true });
  const passages = corpus ?? required('corpus', join(SHARED, 'pool_wiki_dev', 'corpus.jsonl'));
  note(
    `Building the index ${out} if it is missing (80,000 paragraphs with all-MiniLM-L6-v2 take ten minutes on 2 cores)`,
  );
  await runTrawl(['index', passages, '--model', folder, '--out', out, '--if-changed'], signal);
  return out;
}

export async function sampleIndex({ cache, signal }: Pick<ServedIndexOptions, 'cache' | 'signal'>): Promise<string> {
  const out = join(cache, 'serve-index-sample');
  await mkdir(cache, { recursive: true });
  await runTrawl(['index', SAMPLE_CORPUS, '--out', out, '--if-changed', '--quiet'], signal);
  return out;
}

/** Runs `trawl` as a process. @throws TrawlError USAGE if it fails. */
export async function runTrawl(
  args: readonly string[],
  signal: AbortSignal,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  // On stderr, because stdout may be a pipe.
  const child = spawn(process.execPath, [TRAWL, ...args], {
    signal,
    env: environmentWith(environment),
    stdio: ['ignore', process.stderr, process.stderr],
  });
  const code = await new Promise<number | null>((done, reject) => {
    child.on('error', reject);
    child.on('close', done);
  });
  throwIfCancelled(signal);
  if (code !== 0) throw new TrawlError('USAGE', `trawl ${args.join(' ')} ended with exit code ${code}.`);
}

/** The default path of an option. @throws TrawlError USAGE if it does not exist. */
export function required(option: string, path: string): string {
  if (existsSync(path)) return path;
  throw new TrawlError('USAGE', `\`trawl bench serve\` needs --${option}: the default, ${path}, does not exist.`);
}
