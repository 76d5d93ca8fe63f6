import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { isSameJson } from '../../src/base/objects.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { corpusDiffers } from '../building/build-settings.ts';
import { fileRecords } from '../building/store-passages.ts';
import type { WantedUpdate } from './claim-update.ts';
import type { Comparison } from './compare-corpus.ts';
import { lastReading } from './last-reading.ts';
import type { AddedShard, NextGeneration } from './publish-generation.ts';

/** Whether the index has exactly this corpus according to its manifest, so that no passages need to be compared. */
export function holdsCorpus(
  { manifest, shards }: IndexDirectory,
  scan: CorpusScan,
  { type, reading, uniqueIds }: WantedUpdate & { readonly uniqueIds: boolean },
): boolean {
  const { corpus, lastUpdate, tombstones } = manifest;
  if (type !== 'update' || (uniqueIds && corpus.duplicateIds > 0)) return false;
  if (lastUpdate === undefined ? tombstones !== null : lastUpdate.kind !== 'update') return false;
  return (
    isSameJson(lastReading(manifest, shards[0]?.manifest), reading) &&
    corpusDiffers(corpus.files, fileRecords(scan)).length === 0
  );
}

/**
 * Whether an update that changes no row must still write the manifest: the corpus files differ from the recorded ones, or the last
 * change was an append or a deletion, after which the manifest does not say that the index has exactly this corpus.
 */
export function changesManifest(before: IndexManifest, { corpus, lastUpdate }: NextGeneration): boolean {
  if (lastUpdate.kind !== 'update') return false;
  const wasUpdate = before.lastUpdate === undefined || before.lastUpdate.kind === 'update';
  return !wasUpdate || !isSameJson(before.corpus, corpus);
}

/** The corpus record of the next generation. */
export function corpusRecord(
  { corpus: before }: IndexManifest,
  scan: CorpusScan,
  changes: Comparison,
  { type, newShards, duplicateIds }: { type: UpdateType; newShards: readonly AddedShard[]; duplicateIds: number },
): CorpusRecord {
  const files = fileRecords(scan).map((file, i) => ({ ...file, passages: changes.passagesByFile[i] ?? 0 }));
  const isKnown = (file: (typeof files)[number]): boolean => before.files.some((known) => isSameJson(known, file));
  return {
    files: type === 'update' ? files : [...before.files, ...files.filter((file) => !isKnown(file))],
    skippedLines: changes.skippedLines + (type === 'update' ? 0 : before.skippedLines),
    duplicateIds,
    truncatedPassages: newShards.reduce(
      (sum, { manifest }) => sum + manifest.corpus.truncatedPassages,
      before.truncatedPassages,
    ),
    passageTemplate: before.passageTemplate,
  };
}
