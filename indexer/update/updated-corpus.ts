import { isDeepStrictEqual } from 'node:util';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import type { UpdateKind } from '../../src/manifest/build-records.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import type { CorpusRecord } from '../../src/manifest/schemas.ts';
import type { IndexDirectory } from '../../src/retrieval/index-directory.ts';
import { filesOf } from '../build/begin-build.ts';
import { corpusDiffers, readingRecord } from '../build/build-settings.ts';
import type { WantedUpdate } from './claim-update.ts';
import type { Comparison } from './compare-corpus.ts';
import type { AddedShard, NextGeneration } from './publish-generation.ts';

/** Whether the index holds the corpus by what its manifest says, so that no passage need be looked at. */
export function holdsCorpus(
  { manifest, shards }: IndexDirectory,
  scan: CorpusScan,
  options: Omit<WantedUpdate, 'shardRows'> & { readonly uniqueIds: boolean },
): boolean {
  const { corpus, lastUpdate, tombstones } = manifest;
  if (options.kind !== 'update' || (options.uniqueIds && corpus.duplicateIds > 0)) return false;
  if (lastUpdate === undefined ? tombstones !== null : lastUpdate.kind !== 'update') return false;
  const reading = lastUpdate?.reading ?? shards[0]?.manifest.input?.reading;
  return (
    isDeepStrictEqual(reading, readingRecord(options.corpusOptions)) &&
    corpusDiffers(corpus.files, filesOf(scan)).length === 0
  );
}

/** The same passages, of another corpus: that is worth a new manifest. */
export function saysMore(before: IndexManifest, { corpus, lastUpdate }: NextGeneration): boolean {
  if (lastUpdate.kind !== 'update') return false;
  const wasUpdate = before.lastUpdate === undefined || before.lastUpdate.kind === 'update';
  return !wasUpdate || !isDeepStrictEqual(before.corpus, corpus);
}

export function corpusRecord(
  { corpus: before }: IndexManifest,
  scan: CorpusScan,
  changes: Comparison,
  { kind, shards, duplicateIds }: { kind: UpdateKind; shards: readonly AddedShard[]; duplicateIds: number },
): CorpusRecord {
  const files = filesOf(scan).map((file, i) => ({ ...file, passages: changes.passagesByFile[i] ?? 0 }));
  const isKnown = (file: (typeof files)[number]): boolean =>
    before.files.some((known) => isDeepStrictEqual(known, file));
  return {
    files: kind === 'update' ? files : [...before.files, ...files.filter((file) => !isKnown(file))],
    skippedLines: changes.skippedLines + (kind === 'update' ? 0 : before.skippedLines),
    duplicateIds,
    truncatedPassages: shards.reduce(
      (sum, { manifest }) => sum + manifest.corpus.truncatedPassages,
      before.truncatedPassages,
    ),
    passageTemplate: before.passageTemplate,
  };
}
