import { join } from 'node:path';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { IndexFile, IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { passageProblems } from '../verify/verify-passages.ts';

/** What is wrong with a copied file by the manifests; undefined if nothing is. */
export async function fileProblem(
  folder: string,
  file: IndexFile,
  { manifest, shards }: IndexSnapshot,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (file.sha256 !== null) {
    const sha256 = await sha256OfFile(join(folder, file.path), signal);
    return sha256 === file.sha256 ? undefined : `its sha256 is ${sha256}, but the manifest says ${file.sha256}`;
  }
  const entry = manifest.shards.find(({ path }) => `${path}/${shards.get(path)!.passages.path}` === file.path)!;
  const shard = { folder: join(folder, entry.path), firstRow: entry.firstRow, manifest: shards.get(entry.path)! };
  const [first] = await passageProblems(shard, { onBytes: () => undefined, signal });
  return first?.message;
}
