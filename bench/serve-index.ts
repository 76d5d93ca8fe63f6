import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { throwIfCancelled } from '../src/abort.ts';
import { readModelFolder } from '../src/embedding/model-folder.ts';
import { TrawlError } from '../src/errors.ts';
import { packageRoot } from '../src/package-root.ts';
import { TRAWL } from './serve-engine.ts';

/** Real data, where the checkout has it. */
export const SHARED = join(packageRoot, '..', 'shared', 'data');
const SAMPLE_CORPUS = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');

export interface ServedIndexOptions {
  /** An index of the corpus; undefined: built in the cache. */
  readonly index: string | undefined;
  /** The encoder; undefined: the index's. */
  readonly model: string | undefined;
  /** JSON lines. */
  readonly corpus: string | undefined;
  readonly cache: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** The index that is named, or one of the corpus in the cache, built where it is not there yet. */
export async function servedIndex({ index, model, corpus, cache, signal, note }: ServedIndexOptions): Promise<string> {
  if (index !== undefined) return resolve(index);
  if (model === undefined) {
    throw new TrawlError('USAGE', '`trawl bench serve` needs --model, the encoder, or --index, an index made with it.');
  }
  const { identity, folder } = await readModelFolder(model);
  const out = join(cache, `serve-index-${identity.sha256.slice(0, 12)}`);
  await mkdir(cache, { recursive: true });
  const passages = corpus ?? required('corpus', join(SHARED, 'pool_wiki_dev', 'corpus.jsonl'));
  note(`The index ${out} (built once; with 80,000 paragraphs and all-MiniLM-L6-v2 some ten minutes on 2 cores)`);
  await runTrawl(['index', passages, '--model', folder, '--out', out, '--if-changed'], signal);
  return out;
}

export async function sampleIndex({ cache, signal }: Pick<ServedIndexOptions, 'cache' | 'signal'>): Promise<string> {
  const out = join(cache, 'serve-index-sample');
  await mkdir(cache, { recursive: true });
  await runTrawl(['index', SAMPLE_CORPUS, '--out', out, '--if-changed', '--quiet'], signal);
  return out;
}

async function runTrawl(args: readonly string[], signal: AbortSignal): Promise<void> {
  // Its progress is for the person, not for a pipe.
  const child = spawn(process.execPath, [TRAWL, ...args], {
    signal,
    stdio: ['ignore', process.stderr, process.stderr],
  });
  const code = await new Promise<number | null>((settle, reject) => {
    child.on('error', reject);
    child.on('close', settle);
  });
  throwIfCancelled(signal);
  if (code !== 0) throw new TrawlError('USAGE', `trawl ${args.join(' ')} ended with ${code}.`);
}

/** The path of an option's default. Throws USAGE where there is nothing. */
export function required(option: string, path: string): string {
  if (existsSync(path)) return path;
  throw new TrawlError('USAGE', `\`trawl bench serve\` needs --${option}: ${path}, the default, is not there.`);
}
