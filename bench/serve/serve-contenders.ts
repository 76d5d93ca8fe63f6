import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { requireVectors } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { baselinePython } from '../baselines.ts';
import {
  type ServeBaseline,
  type ServeEngine,
  startBaseline,
  startFixedReplyServer,
  startNoOpEncoderServer,
  startTrawl,
} from './serve-engine.ts';
import { SHARED } from './serve-index.ts';
import { LOADS, type ServeLoad } from './serve-loads.ts';

/** Options of `trawl serve` that make it compute every query. */
const WITHOUT = { 'single-flight': ['--no-single-flight'], cache: ['--cache-bytes', '0'] } as const;
/** Loads that need no model. */
export const WITHOUT_MODEL: readonly ServeLoad[] = ['free-encoder', 'free-encoder-batch', 'generator'];

/** A server to measure. */
export interface Contender {
  readonly name: string;
  readonly isBaseline: boolean;
  /** In which it embeds queries. */
  readonly precision: Precision;
  /** Whether each repetition starts a new server, because a running one would answer from its cache. */
  readonly restart: boolean;
  open(): Promise<ServeEngine>;
}

export function contendersFor(
  load: ServeLoad,
  {
    index,
    plainIndex,
    model,
    baseline,
    precision,
  }: {
    index: string;
    plainIndex: string;
    /** The encoder's folder. Undefined: that of the index. A cached index may name a folder that has been removed. */
    model: string | undefined;
    baseline: (() => Promise<ServeEngine>) | undefined;
    /** Of Trawl's queries. Undefined: that of the index. */
    precision: Precision | undefined;
  },
): Contender[] {
  if (load === 'generator') {
    return [
      { name: 'a fixed reply', isBaseline: false, precision: 'float32', restart: false, open: startFixedReplyServer },
    ];
  }
  if (WITHOUT_MODEL.includes(load)) {
    const open = (): Promise<ServeEngine> => startNoOpEncoderServer(plainIndex);
    return [{ name: 'trawl without an encoder', isBaseline: false, precision: 'float32', restart: false, open }];
  }
  const queries = precision ?? requireVectors(index, openIndexDirectory(index).manifest).model.precision ?? 'float32';
  const trawl = (without: readonly (keyof typeof WITHOUT)[], restart: boolean): Contender => {
    const args = without.flatMap((what): readonly string[] => WITHOUT[what]);
    if (precision !== undefined) args.push('--precision', precision);
    const name = ['trawl', ...args].join(' ');
    if (model !== undefined) args.push('--model', model);
    return { name, isBaseline: false, precision: queries, restart, open: () => startTrawl(name, index, args) };
  };
  const contenders =
    load === 'rollouts'
      ? [
          trawl([], true),
          trawl(['single-flight'], true),
          trawl(['cache'], true),
          trawl(['single-flight', 'cache'], true),
        ]
      : [trawl(['single-flight', 'cache'], false)];
  if (baseline !== undefined && LOADS[load].hasBaseline) {
    contenders.push({ name: 'search-r1', isBaseline: true, precision: 'float32', restart: false, open: baseline });
  }
  return contenders;
}

export interface BaselineOptions {
  readonly against: readonly ServeBaseline[];
  readonly model: string | undefined;
  /** The checkpoint for the baseline. Undefined: the model's folder, if it has a checkpoint. */
  readonly baselineModel: string | undefined;
  readonly corpus: string | undefined;
  readonly threads: number;
  readonly cache: string;
  readonly python: string | undefined;
}

/** Returns a function that starts the baseline over the index's own vectors, or calls `skip` if that is impossible. */
export async function baselineOf(
  options: BaselineOptions,
  index: string,
  skip: (engine: string, reason: string) => void,
): Promise<(() => Promise<ServeEngine>) | undefined> {
  const [name] = options.against;
  if (name === undefined) return undefined;
  const python = options.python ?? baselinePython(options.cache, 'serve');
  const { source, manifest } = openIndexDirectory(index);
  const { prefixes, maxTokens } = requireVectors(index, manifest).model;
  const shards = source!.shards;
  const vectors = shards[0]?.segments[0]?.path;
  const corpus = options.corpus ?? join(SHARED, 'pool_wiki_dev', 'corpus.jsonl');
  const model =
    options.baselineModel ?? (options.model === undefined ? undefined : (await readModelFolder(options.model)).folder);
  const reason =
    python === undefined
      ? 'no Python environment: run trawl bench baselines serve'
      : model === undefined || !existsSync(join(model, 'config.json'))
        ? 'its checkpoint is unknown: give its folder with --baseline-model'
        : vectors === undefined || shards.length > 1 || shards[0]!.segments.length > 1
          ? `${index} has several vector files, but faiss reads only one`
          : !existsSync(corpus)
            ? `the corpus ${corpus} does not exist: give the index's corpus with --corpus`
            : undefined;
  if (reason !== undefined) {
    skip(name, reason);
    return undefined;
  }
  return () =>
    startBaseline(name, {
      python: python!,
      threads: options.threads,
      model: resolve(model!),
      vectors: vectors!,
      corpus: resolve(corpus),
      prefix: prefixes.query,
      maxTokens: maxTokens.query ?? 512,
      topk: 3,
    });
}
