import { TrawlError } from '../src/errors.ts';
import type { UpdateKind } from '../src/manifest/build-records.ts';
import type { OptionTable } from '../src/options/option-spec.ts';

/** Options of `trawl index` and `trawl import` about how a build goes, not about what it makes. */
export const BUILD_OPTIONS = {
  'shard-rows': {
    kind: 'integer',
    value: 'N',
    default: 1_000_000,
    min: 1,
    help: 'Most rows of a shard. The corpus is cut evenly into as few shards as that allows; a shard that is complete is never made again.',
  },
  shard: {
    kind: 'string',
    value: 'I/N',
    help: 'Build one of N shards, I from 0, as a job of its own; `trawl merge` makes the index of them. All jobs get the same other options.',
  },
  plan: {
    kind: 'flag',
    help: 'Print what the build would take (rows, bytes of each file, memory, time by a short measurement) and what does not fit, and build nothing.',
  },
  restart: {
    kind: 'flag',
    help: 'Remove what a build that was stopped has done. Without it the same command goes on where it stopped.',
  },
  'checkpoint-seconds': {
    kind: 'integer',
    value: 'N',
    default: 5,
    min: 0,
    max: 86_400,
    help: 'Between two checkpoints, which is what a build that is killed does again. 0: after every batch.',
  },
} as const satisfies OptionTable;

/** Options of `trawl index` that change an index in place of making one. */
export const UPDATE_OPTIONS = {
  update: {
    kind: 'flag',
    help: "Change the index at OUT so that it holds this corpus and nothing else: passages that it has keep their rows and vectors, others are embedded into new shards, those that the corpus lacks are removed. Model and template are the index's.",
  },
  append: { kind: 'flag', help: 'The same, but nothing is removed.' },
} as const satisfies OptionTable;

/**
 * Which change of an index is asked for, if any.
 *
 * @throws TrawlError USAGE where other options contradict it.
 */
export function updateKind(
  options: { readonly update: boolean; readonly append: boolean },
  given: ReadonlySet<string>,
): UpdateKind | undefined {
  const kind = options.update ? 'update' : options.append ? 'append' : undefined;
  if (kind === undefined) return undefined;
  const other = [
    ...(options.append && options.update ? ['append'] : []),
    'overwrite',
    'if-changed',
    'shard',
    'from-embeddings',
  ].find((name) => given.has(name));
  if (other === undefined) return kind;
  throw new TrawlError('USAGE', `--${kind} changes the index that is there; --${other} does not go with it.`);
}

/** @throws TrawlError USAGE. */
export function parseShard(text: string | undefined): { index: number; of: number } | undefined {
  if (text === undefined) return undefined;
  const [, index, of] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  if (index === undefined || of === undefined || Number(of) < 1) {
    throw new TrawlError('USAGE', `--shard is ${JSON.stringify(text)}; it is I/N, for example 0/8 for the first of 8.`);
  }
  if (Number(index) >= Number(of)) {
    throw new TrawlError(
      'USAGE',
      `--shard is ${text}; shards are counted from 0: the last one is ${Number(of) - 1}/${of}.`,
    );
  }
  return { index: Number(index), of: Number(of) };
}
