import { resolve } from 'node:path';
import { usageError } from '../../src/base/errors.ts';
import type { OpenIndex } from '../../src/server/indexes/index-slot.ts';
import { readBundleManifest } from '../../training/replay/bundle-manifest.ts';
import { openBundle } from '../../training/replay/open-bundle.ts';
import { MIB, type ServeOptions } from './serve-options.ts';
import { parseServedIndexes, type ServedIndex } from './served-indexes.ts';

/** Options that need an index, or limit what was already recorded. */
const NEEDS_INDEX = ['writable', 'filter', 'views', 'view', 'cut-tokenizer', 'model'] as const;

/**
 * The bundle of `--replay` as a served index, under the name of the index that answered.
 *
 * @throws TrawlError USAGE for options that need an index, and the errors of `readBundleManifest`.
 */
export function replayedBundle(options: ServeOptions, positionals: readonly string[]): ServedIndex {
  const folder = resolve(options.replay!);
  if (positionals.length > 0 || options.index.length > 0) {
    throw usageError('--replay serves a bundle in place of an index, so it cannot be combined with index directories.');
  }
  const other = NEEDS_INDEX.find((name) => options[name] !== undefined);
  if (other !== undefined) {
    throw usageError(`--${other} cannot be combined with --replay: a bundle has recorded answers only.`);
  }
  const { index } = readBundleManifest(folder);
  // `--rerank` says that requests are reranked which do not ask for it, as on the server that recorded. No reranker is loaded.
  if (options.rerank !== undefined && index.reranker === null) {
    throw usageError(`--rerank has no effect on ${options.replay}: none of its answers was reranked.`);
  }
  return parseServedIndexes([`${index.name}=${folder}`])[0]!;
}

/** Opens bundles in place of indexes. */
export function bundleOpener({ unrecorded, 'max-waiting-mib': maxWaitingMib }: ServeOptions): OpenIndex {
  return async (name, { folder }, report) => {
    report({ stage: 'verifying', doing: 'checking the bundle' });
    return openBundle(folder, { name, unrecorded, maxWaitingBytes: maxWaitingMib * MIB });
  };
}
