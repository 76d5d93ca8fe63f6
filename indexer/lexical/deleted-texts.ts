import { join } from 'node:path';
import type { LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { generationOf, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { Bm25Record } from '../../src/index/manifest/schemas.ts';
import { fieldText } from '../../src/index/passages/document-fields.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { within } from '../../src/search/opening/index-directory.ts';
import { fieldInFileName, fileRecord } from '../index-files.ts';
import { writeLexical } from './make-lexical.ts';

type DeletedTexts = NonNullable<NonNullable<IndexManifest['bm25']>['deleted']>[number];

const FILE_NAME = /^deleted-(?:contents|title|text|field-[0-9a-f]{32})-[0-9a-f]{32}\.bm25(?:\.tmp)?(?:\.run-\d+)?$/;
const BLOCK_TEXTS = 1_024;

/**
 * Writes inverted indexes over the texts of the deleted rows and names them in the manifest. BM25 subtracts their counts, so
 * that scores are equal to the scores of an index without the deleted rows. Does nothing if the index has no BM25 or no deleted rows.
 *
 * @throws TrawlError ENGINE_MISSING, DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors of the passage files.
 */
export async function writeDeletedTexts(
  folder: string,
  manifest: IndexManifest,
  deleted: RowBitmap,
  signal?: AbortSignal,
): Promise<void> {
  const { bm25, tombstones } = manifest;
  if (bm25 === undefined) return;
  bm25.deleted = null;
  if (tombstones === null) return;
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  const records: DeletedTexts[] = [];
  for (const field of bm25.made.fields) {
    const path = join(folder, fileName(field, manifest, bm25.made));
    const blocks = (): Iterable<readonly string[]> => deletedTexts(folder, manifest, deleted, field);
    await writeLexical(path, bm25.made, kernel, { blocks, signal });
    records.push({ ...(await fileRecord(path, signal)), field });
  }
  bm25.deleted = records;
}

/**
 * Contains a hash of the rows and of all settings but k1 and b, which do not affect the file. So a file that another manifest
 * names is never overwritten with other terms.
 */
function fileName(field: LexicalField, { generation }: IndexManifest, { k1, b, ...settings }: Bm25Record): string {
  const sorted = Object.entries(settings).sort(([one], [other]) => (one < other ? -1 : 1));
  return `deleted-${fieldInFileName(field)}-${generationOf([generation, ...sorted])}.bm25`;
}

/** Whether a file of an index is an inverted index over deleted texts that the manifest does not name. */
export function isUnusedDeletedTexts(name: string, { bm25 }: IndexManifest): boolean {
  return FILE_NAME.test(name) && bm25?.deleted?.some(({ path }) => path === name) !== true;
}

function* deletedTexts(
  folder: string,
  { shards }: IndexManifest,
  deleted: RowBitmap,
  field: LexicalField,
): Generator<readonly string[], void> {
  let texts: string[] = [];
  for (const { path, firstRow, rows } of shards) {
    const shard = within(folder, path);
    const file = new PassageFile(within(shard, readShardManifest(shard).passages.path));
    try {
      for (let row = 0; row < rows; row++) {
        if (!deleted.has(firstRow + row)) continue;
        texts.push(fieldText(file.document(row)!, field));
        if (texts.length < BLOCK_TEXTS) continue;
        yield texts;
        texts = [];
      }
    } finally {
      file.close();
    }
  }
  if (texts.length > 0) yield texts;
}
