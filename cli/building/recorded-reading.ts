import { join } from 'node:path';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { lastReading } from '../../indexer/update/last-reading.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';

/** The options with which the corpus of an index was read last. Empty if they are not known. */
export function recordedReading(folder: string, manifest: IndexManifest): CorpusOptions {
  const [first] = manifest.shards;
  const reading = lastReading(manifest, first && readShardManifest(join(folder, first.path)));
  if (reading === null) return {};
  const { format, tsvLayout, tsvIdType, skipBadLines } = reading;
  return {
    ...(format === null ? {} : { format: format as CorpusOptions['format'] }),
    tsvLayout: tsvLayout as CorpusOptions['tsvLayout'],
    tsvIdType: tsvIdType as CorpusOptions['tsvIdType'],
    skipBadLines,
  };
}
