import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../index/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../index/manifest/shard-manifest.ts';

/** Number of times that an index may change while it is opened. */
const MAX_CHANGES = 10;

/**
 * Opens an index that another process may change: `trawl optimize` replaces the manifests one after another and then removes the
 * files that they no longer name, so what was read first may not fit what was read last. If `open` throws or its promise is rejected,
 * it is called again as long as the manifests change.
 *
 * @throws the last error of `open`.
 */
export function openUnchanged<T>(folder: string, open: () => T): T {
  let seen: string | undefined;
  let changes = 0;
  const attempt = (): T => {
    try {
      const opened = open();
      return opened instanceof Promise ? (opened.catch(openAgain) as T) : opened;
    } catch (error) {
      return openAgain(error);
    }
  };
  const openAgain = (error: unknown): T => {
    if (changes++ === MAX_CHANGES || !(error instanceof TrawlError) || !error.code.startsWith('INDEX_')) throw error;
    const found = manifestTexts(folder);
    if (found === undefined || found === seen) throw error;
    seen = found;
    return attempt();
  };
  return attempt();
}

/** The manifests of an index and its shards; undefined if one of them cannot be read. */
function manifestTexts(folder: string): string | undefined {
  try {
    const shards = readIndexManifest(folder).shards.map(({ path }) => join(resolve(folder, path), SHARD_MANIFEST_FILE));
    return [join(folder, INDEX_MANIFEST_FILE), ...shards].map((path) => readFileSync(path, 'utf8')).join('\n');
  } catch {
    return undefined;
  }
}
