import { existsSync } from 'node:fs';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardLexical } from '../../src/index/manifest/shard-manifest.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { lexicalHeaderProblems, lexicalOfShard } from '../verify/verify-lexical.ts';
import { verifyWords } from '../verify/verify-words.ts';
import { pathsOf } from './lexical-records.ts';

/** Passages of the index that are analysed again. */
const SAMPLE = 1_000;

/**
 * Whether the files of these inverted indexes of a shard exist, with the checksums and counts of its manifest.
 *
 * @throws TrawlError CANCELLED; errors of reading.
 */
export async function isIntact(
  { folder, manifest }: Pick<OpenedShard, 'folder' | 'manifest'>,
  lexical: ShardLexical,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const paths = new Set(pathsOf(lexical));
  if (
    !(await areIntact(
      folder,
      manifest.files.filter(({ path }) => paths.has(path)),
      signal,
    ))
  )
    return false;
  const absolute = new Set([...paths].map((path) => within(folder, path)));
  return lexicalOfShard(folder, manifest).every(
    (named) => !absolute.has(named.path) || lexicalHeaderProblems(named).length === 0,
  );
}

/** Whether the files exist and have the checksums of their records. */
export async function areIntact(
  folder: string,
  files: readonly FileRecord[],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (const { path, sha256 } of files) {
    const file = within(folder, path);
    if (!existsSync(file) || (await sha256OfFile(file, signal)) !== sha256) return false;
  }
  return true;
}

/**
 * The inverted indexes that the index searches and that lack words of its passages, in a sample. Their files may be as they were
 * written, so checksums do not find them.
 *
 * @param kernel without it, nothing is found.
 */
export async function filesOfOtherPassages(
  manifest: IndexManifest,
  shards: readonly OpenedShard[],
  kernel: Kernel | undefined,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  if (kernel === undefined) return new Set();
  const { problems } = await verifyWords(manifest, shards, kernel, { sample: SAMPLE, signal });
  return new Set(problems.map(({ file }) => file));
}
