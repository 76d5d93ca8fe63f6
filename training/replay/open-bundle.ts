import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import { DEFAULT_MAX_WAITING_BYTES } from '../../src/search/admission.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import type { RetrieverInfo } from '../../src/search/retriever-info.ts';
import { BUNDLE_FILES, type BundleManifest, checkBundleFiles, readBundleManifest } from './bundle-manifest.ts';
import { ReplayRetriever, type Unrecorded } from './replay-retriever.ts';

interface OpenBundleOptions {
  /** Name of the index in requests. Default: the name of the index that answered. */
  readonly name?: string;
  readonly unrecorded?: Unrecorded;
  readonly maxWaitingBytes?: number;
}

/**
 * Opens a bundle. All files are read once, to compare their checksums; afterwards memory holds 8 bytes a passage. Equal queries in
 * flight are not shared: one with a larger k may fail where one with a smaller k does not.
 *
 * @throws TrawlError INDEX_NOT_FOUND, INDEX_FILE_…, INDEX_CHECKSUM_MISMATCH, INDEX_MANIFEST_INVALID or INDEX_VERSION_UNSUPPORTED.
 */
export async function openBundle(
  folder: string,
  { name, unrecorded = 'error', maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES }: OpenBundleOptions = {},
): Promise<OpenRetriever> {
  const manifest = readBundleManifest(folder);
  await checkBundleFiles(folder, manifest);
  const rows = readRows(join(folder, BUNDLE_FILES.rows), manifest);
  const opened: SqlitePassageStore[] = [];
  try {
    for (const file of ['answers', 'passages'] as const) {
      const path = join(folder, BUNDLE_FILES[file]);
      opened.push(await SqlitePassageStore.open([{ path, firstRow: 0, rows: manifest[file] }]));
    }
    const [answers, passages] = opened as [SqlitePassageStore, SqlitePassageStore];
    const { uniqueIds } = manifest.index;
    const info = retrieverInfo(manifest, name);
    return new ReplayRetriever({ info, answers, passages, rows, uniqueIds, unrecorded, maxWaitingBytes });
  } catch (error) {
    await Promise.all(opened.map((store) => store.close()));
    throw error;
  }
}

function readRows(path: string, { passages }: BundleManifest): Float64Array {
  const bytes = readFileSync(path);
  if (bytes.length !== 8 * passages) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: has ${bytes.length} bytes; expected 8 for each of ${passages} passages. Make the bundle again.`,
    );
  }
  return Float64Array.from({ length: passages }, (_, i) => bytes.readDoubleLE(8 * i));
}

function retrieverInfo({ index, model }: BundleManifest, name: string = index.name): RetrieverInfo {
  const { name: _name, uniqueIds: _unique, reranker, ...facts } = index;
  return {
    ...facts,
    index: name,
    model,
    views: [],
    reranker: reranker === null ? null : { name: reranker, maxTokens: null },
    memory: { residentBytes: 0, touchedBytes: 0, mappedBytes: 0, lexicalBytes: 0 },
  };
}
