import { readFileSync } from 'node:fs';
import { sha256OfFile } from '../src/file-checksum.ts';
import { type IndexDirectory, within } from '../src/retrieval/index-directory.ts';
import { RowBitmap } from '../src/vector-index/row-bitmap.ts';

/** What is wrong with the bitmap of removed rows, as sentences. */
export async function tombstoneProblems(
  { folder, manifest }: IndexDirectory,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const { tombstones } = manifest;
  if (tombstones === null) return [];
  const path = within(folder, tombstones.path);
  const sha256 = await sha256OfFile(path, signal);
  if (sha256 !== tombstones.sha256) return [`${path}: sha256 is ${sha256}, the manifest says ${tombstones.sha256}`];
  const { size } = new RowBitmap(manifest.rows, readFileSync(path));
  if (size !== tombstones.rows) return [`${path}: ${size} rows are marked, the manifest says ${tombstones.rows}`];
  return [];
}
