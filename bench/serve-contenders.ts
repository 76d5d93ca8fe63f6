import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readModelFolder } from '../src/embedding/model-folder.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { baselinePython } from './baselines.ts';
import {
  type ServeBaseline,
  type ServeEngine,
  startBaseline,
  startIdleServer,
  startTrawl,
  startTrivialServer,
} from './serve-engine.ts';
import { SHARED } from './serve-index.ts';
import { LOAD_KINDS, type ServeLoad } from './serve-loads.ts';

/** Options of `trawl serve` that switch off what answers a query without computing it. */
const WITHOUT = { 'single-flight': ['--no-single-flight'], cache: ['--cache-bytes', '0'] } as const;
export const SWITCHES = [WITHOUT['single-flight'][0], WITHOUT.cache[0]];
/** Loads of an encoder that costs nothing, or of no encoder. */
export const FREE: readonly ServeLoad[] = ['free-encoder', 'free-encoder-batch', 'generator'];

/** What a load is put on: opened anew for each repetition where what it remembers would answer the next one. */
export interface Contender {
  readonly name: string;
  readonly isBaseline: boolean;
  readonly fresh: boolean;
  open(): Promise<ServeEngine>;
}

export function contendersFor(
  load: ServeLoad,
  {
    index,
    freeIndex,
    known,
    baseline,
  }: {
    index: string;
    freeIndex: string;
    known: ReadonlySet<string>;
    baseline: (() => Promise<ServeEngine>) | undefined;
  },
): Contender[] {
  if (load === 'generator') {
    return [{ name: 'a server that does nothing', isBaseline: false, fresh: false, open: startTrivialServer }];
  }
  if (FREE.includes(load)) {
    const open = (): Promise<ServeEngine> => startIdleServer(freeIndex);
    return [{ name: 'trawl, free encoder', isBaseline: false, fresh: false, open }];
  }
  const ours = (without: readonly (keyof typeof WITHOUT)[], fresh: boolean): Contender => {
    const args = without.map((what) => WITHOUT[what]).filter(([option]) => known.has(option));
    const name = ['trawl', ...args.flat()].join(' ');
    return { name, isBaseline: false, fresh, open: () => startTrawl(name, index, args.flat()) };
  };
  const contenders =
    load === 'rollouts'
      ? [
          ours([], true),
          ours(['single-flight'], true),
          ours(['cache'], true),
          ours(['single-flight', 'cache'], true),
        ].filter(({ name }, i, all) => all.findIndex((other) => other.name === name) === i)
      : [ours(['single-flight', 'cache'], false)];
  if (baseline !== undefined && LOAD_KINDS[load].compared) {
    contenders.push({ name: 'search-r1', isBaseline: true, fresh: false, open: baseline });
  }
  return contenders;
}

export interface BaselineOptions {
  readonly against: readonly ServeBaseline[];
  readonly model: string | undefined;
  /** The checkpoint; undefined: the model's folder, where it holds one. */
  readonly baselineModel: string | undefined;
  readonly corpus: string | undefined;
  readonly threads: number;
  readonly cache: string;
  readonly python: string | undefined;
}

/** How the baseline over the index's own vectors is started; undefined, and said, where it cannot be. */
export async function baselineOf(
  options: BaselineOptions,
  index: string,
  skip: (engine: string, reason: string) => void,
): Promise<(() => Promise<ServeEngine>) | undefined> {
  const [name] = options.against;
  if (name === undefined) return undefined;
  const python = options.python ?? baselinePython(options.cache, 'serve');
  const { source, manifest } = openIndexDirectory(index);
  const vectors = source.shards[0]?.segments[0]?.path;
  const corpus = options.corpus ?? join(SHARED, 'pool_wiki_dev', 'corpus.jsonl');
  const model =
    options.baselineModel ?? (options.model === undefined ? undefined : (await readModelFolder(options.model)).folder);
  const reason =
    python === undefined
      ? 'no Python environment: trawl bench baselines serve makes one'
      : model === undefined || !existsSync(join(model, 'config.json'))
        ? 'its checkpoint is not known: name the folder with --baseline-model'
        : vectors === undefined || source.shards.length > 1 || source.shards[0]!.segments.length > 1
          ? `${index} has more than one file of vectors, and faiss reads one`
          : !existsSync(corpus)
            ? `there is no corpus ${corpus}: name the index's with --corpus`
            : undefined;
  if (reason !== undefined) {
    skip(name, reason);
    return undefined;
  }
  const { prefixes, maxTokens } = manifest.model;
  return () =>
    startBaseline(name, {
      python: python!,
      threads: options.threads,
      model: resolve(model!),
      vectors: vectors!,
      corpus: resolve(corpus),
      prefix: prefixes.query,
      maxTokens: maxTokens.query,
      topk: 3,
    });
}
