import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { folderSource } from '../../../indexer/sync/folder-source.ts';
import { type SyncOptions, type SyncReport, syncIndex } from '../../../indexer/sync/sync-index.ts';

const FAST = { attempts: 3, firstWaitMs: 1, maxWaitMs: 2 };

/** Copies a folder or another source, without output. */
export function sync(
  from: string | SyncOptions['open'],
  destination: string,
  options: Partial<SyncOptions> = {},
): Promise<SyncReport> {
  return syncIndex({
    open: typeof from === 'string' ? folderSource(from) : from,
    destination,
    dryRun: false,
    check: false,
    jobs: 2,
    bytesPerSecond: undefined,
    keep: 2,
    retry: FAST,
    signal: new AbortController().signal,
    note: () => undefined,
    onProgress: () => undefined,
    ...options,
  });
}

/** The files of a folder, links followed, by their relative paths. */
export function contentsOf(folder: string): Record<string, string> {
  const root = realpathSync(folder);
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => join(root, name))
    .filter((path) => statSync(path).isFile())
    .sort();
  return Object.fromEntries(files.map((path) => [relative(root, path), readFileSync(path, 'latin1')]));
}
