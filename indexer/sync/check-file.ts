import { join } from 'node:path';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { IndexFile, IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { passageProblems } from '../verify/verify-passages.ts';

/**
 * What is wrong with a copied file by the manifests; undefined if nothing is.
 *
 * @param digest the file's SHA-256. Default: reads the file.
 */
export async function fileProblem(
  folder: string,
  file: IndexFile,
  { manifest, shards }: IndexSnapshot,
  signal: AbortSignal,
  digest: () => string | Promise<string> = () => sha256OfFile(join(folder, file.path), signal),
): Promise<string | undefined> {
  if (file.sha256 !== null) {
    const sha256 = await digest();
    return sha256 === file.sha256 ? undefined : `its sha256 is ${sha256}, but the manifest says ${file.sha256}`;
  }
  const entry = manifest.shards.find(({ path }) => `${path}/${shards.get(path)!.passages.path}` === file.path)!;
  const shard = { folder: join(folder, entry.path), firstRow: entry.firstRow, manifest: shards.get(entry.path)! };
  const [first] = await passageProblems(shard, { onBytes: () => undefined, signal });
  return first?.message;
}
