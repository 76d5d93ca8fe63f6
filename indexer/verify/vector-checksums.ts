import { TrawlError } from '../../src/errors.ts';
import { sha256OfFile } from '../../src/file-checksum.ts';
import { type OpenedShard, within } from '../../src/retrieval/index-directory.ts';

/** What the manifest says of the vectors' bytes: of whole files of the index's own, and of parts of adopted ones. */
export interface VectorChecksum {
  readonly path: string;
  readonly sha256: string;
  readonly part?: { readonly offset: number; readonly bytes: number };
}

export function vectorChecksums({ folder, manifest }: OpenedShard): VectorChecksum[] {
  const adopted = manifest.vectors.flatMap((segment): VectorChecksum[] =>
    segment.adopted === undefined
      ? []
      : [{ path: within(folder, segment.path), sha256: segment.adopted.sha256, part: segment }],
  );
  const names = new Set(manifest.vectors.map(({ path }) => path));
  const own = manifest.files.filter(({ path }) => names.has(path));
  return [...own.map(({ path, sha256 }) => ({ path: within(folder, path), sha256 })), ...adopted];
}

/**
 * Before vectors are copied: a copy gets a checksum of its own, which would vouch for a byte that had changed.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN naming the file, CANCELLED.
 */
export async function requireUnchangedVectors(shard: OpenedShard, signal: AbortSignal | undefined): Promise<void> {
  for (const { path, sha256, part } of vectorChecksums(shard)) {
    const found = await sha256OfFile(path, signal, undefined, part);
    if (found === sha256) continue;
    const bytes = part === undefined ? '' : ` of bytes ${part.offset} to ${part.offset + part.bytes}`;
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: sha256${bytes} is ${found}, the manifest says ${sha256}. Its vectors are not copied; restore the file, or ` +
        'build the index again.',
    );
  }
}
