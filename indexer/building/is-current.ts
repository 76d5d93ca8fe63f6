import { basename } from 'node:path';
import { type CorpusFile, listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { type CorpusOptions, openCorpus } from '../../corpus/open-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { isSameModel } from '../../src/encoder/identity/same-model.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { isOfOneCorpus, lastReading } from '../update/last-reading.ts';
import { type BuildOptions, readingRecord } from './build.ts';
import { columnsDiffer } from './build-settings.ts';

/** The options of a build that determine the content of an index. */
export type WantedIndex = Pick<
  BuildOptions,
  'corpus' | 'corpusOptions' | 'uniqueIds' | 'passageTemplate' | 'bm25' | 'columns'
> & { readonly encoder: Pick<TextEncoder, 'identity'> | undefined };

/** Returns the manifest of the index in `folder` if a build of `wanted` would produce the same index, else undefined. */
export async function currentIndex(folder: string, wanted: WantedIndex): Promise<IndexManifest | undefined> {
  let directory: IndexDirectory;
  try {
    directory = openIndexDirectory(folder);
  } catch (error) {
    if (error instanceof TrawlError) return undefined;
    throw error;
  }
  return (await isCurrent(directory, wanted)) ? directory.manifest : undefined;
}

async function isCurrent(directory: IndexDirectory, wanted: WantedIndex): Promise<boolean> {
  const recorded = directory.manifest;
  if (recorded.corpus.passageTemplate !== wanted.passageTemplate) return false;
  if (!isSameModel(recorded.model, wanted.encoder?.identity ?? null)) return false;
  if (!isSameJson(recorded.bm25?.made, wanted.bm25)) return false;
  if (columnsDiffer(recorded.columns, wanted.columns).length > 0) return false;
  // In the next two cases a build would fail, and its message says why.
  if (recorded.corpus.skippedLines > 0 && wanted.corpusOptions.skipBadLines !== true) return false;
  if (recorded.corpus.duplicateIds > 0 && wanted.uniqueIds) return false;
  if (!isOfOneCorpus(recorded)) return false;
  const files = listCorpusFiles(wanted.corpus, wanted.corpusOptions.format);
  if (files.length !== recorded.corpus.files.length) return false;
  for (const [i, file] of files.entries()) {
    const record = recorded.corpus.files[i]!;
    if (record.name !== basename(file.path) || record.bytes !== file.sizeBytes) return false;
    if (record.sha256 !== (await sha256OfFile(file.path))) return false;
  }
  // The rows of an updated index are not in corpus order, but its manifest records the reading options.
  const reading = recorded.lastUpdate?.reading;
  if (reading != null) return isSameJson(reading, readingRecord(wanted.corpusOptions));
  // Other columns may be in rows after the first.
  const built = lastReading(recorded, directory.shards[0]?.manifest);
  if (built !== null && !isSameJson(built.columns, readingRecord(wanted.corpusOptions).columns)) return false;
  return hasSameFirstPassages(directory, files, wanted.corpusOptions);
}

/** Whether the corpus was read with the same options (TSV layout, type of ids), by the first passage of each file. */
async function hasSameFirstPassages(
  directory: IndexDirectory,
  files: readonly CorpusFile[],
  options: CorpusOptions,
): Promise<boolean> {
  const store = await SqlitePassageStore.open(directory.passages);
  try {
    let row = 0;
    for (const [i, { path }] of files.entries()) {
      const { passages } = directory.manifest.corpus.files[i]!;
      if (passages > 0) {
        const [stored] = await store.getMany(Float64Array.of(row));
        if (stored !== (await firstDocument(path, options))) return false;
      }
      row += passages;
    }
    return true;
  } finally {
    await store.close();
  }
}

async function firstDocument(path: string, options: CorpusOptions): Promise<string | undefined> {
  for await (const { document } of openCorpus([path], { ...options, checksums: false })) return document;
  return undefined;
}
