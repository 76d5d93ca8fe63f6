import type { JobShard } from '../../indexer/building/build-shard-job.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import * as option from '../options/option.ts';

/** Options of `trawl index` and `trawl import` for the build. They do not change what the index contains. */
export const BUILD_OPTIONS = {
  'shard-rows': option.integer(
    { default: 1_000_000, min: 1 },
    'Largest number of rows in a shard. The corpus is split evenly into as few shards as possible. A complete shard is not built again.',
  ),
  shard: option.text(
    'I/N',
    'Build only shard I (counted from 0) of N, as one of several jobs that have all other options in common. `trawl merge` then joins the shards into an index.',
  ),
  plan: option.flag(
    'Build nothing; estimate rows, bytes of each file, memory and time (by a short measurement), expect the latency and throughput of searches (by another), and report what does not fit on this machine.',
  ),
  restart: option.flag(
    'Start over and delete the work of a stopped build. Without it, the same command resumes that build.',
  ),
  'checkpoint-seconds': option.integer(
    { default: 5, min: 0, max: 86_400 },
    'Seconds between two checkpoints, which is the work that a killed build can lose. 0: after every batch.',
  ),
} as const satisfies OptionTable;

/** Options of `trawl index` that change an existing index. */
export const UPDATE_OPTIONS = {
  update: option.flag(
    'Change the index at OUT so that it has exactly the passages of this corpus: known passages keep their rows and vectors, new passages are embedded into new shards, missing passages are deleted. Model and template stay as they are.',
  ),
  append: option.flag('Like --update, but delete nothing.'),
} as const satisfies OptionTable;

/**
 * The requested change of an existing index; undefined for a new build.
 *
 * @throws TrawlError USAGE for options that contradict it.
 */
export function requestedUpdate(
  options: { readonly update: boolean; readonly append: boolean },
  given: ReadonlySet<string>,
): UpdateType | undefined {
  const type = options.update ? 'update' : options.append ? 'append' : undefined;
  if (type === undefined) return undefined;
  const other = [
    ...(options.append && options.update ? ['append'] : []),
    'overwrite',
    'if-changed',
    'shard',
    'from-embeddings',
    'bm25',
    'column',
  ].find((name) => given.has(name));
  if (other === undefined) return type;
  throw usageError(`--${type} changes an existing index and cannot be combined with --${other}.`);
}

/** @throws TrawlError USAGE. */
export function parseShard(text: string | undefined): JobShard | undefined {
  if (text === undefined) return undefined;
  const [, index, of] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  if (index === undefined || of === undefined || Number(of) < 1) {
    throw usageError(`--shard is ${JSON.stringify(text)}; expected I/N, such as 0/8 for the first of 8.`);
  }
  if (Number(index) >= Number(of)) {
    throw usageError(`--shard is ${text}, but shards are counted from 0: the last one is ${Number(of) - 1}/${of}.`);
  }
  return { index: Number(index), of: Number(of) };
}
