import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { throwIfCancelled } from '../../base/abort.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { type IndexDirectory, within } from '../../search/opening/index-directory.ts';
import type { Publication } from '../published/publication.ts';
import { FIRST_FILE_PART, type PartStore, type StoredFile, writeFile } from '../published/stored-files.ts';

/** The manifest with the model's folder as an absolute path: a relative one starts at the index's folder, which is not in the store. */
export function portable({ folder, manifest }: IndexDirectory): IndexManifest {
  const { modelLocation } = manifest;
  return modelLocation === undefined ? manifest : { ...manifest, modelLocation: resolve(folder, modelLocation) };
}

/** Stores the columns for filters and the bitmap of deleted rows. */
export async function storeFiles(
  store: PartStore,
  { folder, manifest, columns }: IndexDirectory,
  { onProgress, signal }: { readonly onProgress: (done: number, total: number) => void; readonly signal: AbortSignal },
): Promise<Pick<Publication, 'columns' | 'deletedRows'>> {
  const total = columns.length + 1;
  let part = FIRST_FILE_PART;
  const put = async (path: string): Promise<StoredFile> => {
    throwIfCancelled(signal);
    const stored = await writeFile(store, part, readFileSync(path));
    part += stored.parts;
    return stored;
  };
  const stored: Publication['columns'] = [];
  for (const [i, { name, type, paths }] of columns.entries()) {
    onProgress(i, total);
    const files: StoredFile[] = [];
    for (const path of paths) files.push(await put(path));
    stored.push({ name, type, files });
  }
  const { tombstones } = manifest;
  const deletedRows = tombstones === null ? null : await put(within(folder, tombstones.path));
  return { columns: stored, deletedRows };
}
