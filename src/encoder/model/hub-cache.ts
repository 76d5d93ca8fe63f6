import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The repository of a folder `models--ORGANISATION--NAME/snapshots/COMMIT` of Python's huggingface_hub; null for any other folder. */
export function cachedRepository(folder: string): { readonly id: string; readonly revision: string } | null {
  const snapshots = dirname(folder);
  const repository = /^models--(.+)$/.exec(basename(dirname(snapshots)));
  if (repository === null || basename(snapshots) !== 'snapshots') return null;
  return { id: repository[1]!.replace('--', '/'), revision: basename(folder) };
}

/** For a folder `models--ORGANISATION--NAME`: the snapshot of `main`, or the only one. Any other folder is returned as it is. */
export function cachedSnapshot(folder: string): string {
  const snapshots = join(folder, 'snapshots');
  if (!basename(folder).startsWith('models--') || !existsSync(snapshots)) return folder;
  const main = join(folder, 'refs', 'main');
  const commits = existsSync(main) ? [readFileSync(main, 'utf8').trim()] : readdirSync(snapshots);
  const [commit] = commits;
  if (commits.length !== 1 || !/^\w+$/.test(commit!)) return folder;
  const snapshot = join(snapshots, commit!);
  return (statSync(snapshot, { throwIfNoEntry: false })?.isDirectory() ?? false) ? snapshot : folder;
}
