import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { withTransferRetries } from '../../src/base/net/retries.ts';
import { defined } from '../../src/base/objects.ts';
import { syncFolder, writeFileDurably } from '../../src/base/system/durable-file.ts';
import { requireFreeBytes } from '../../src/base/system/free-bytes.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { type IndexSnapshot, readSnapshot } from '../../src/index/files/index-snapshot.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { fileProblem } from './check-file.ts';
import { CopiesFolder } from './copies-folder.ts';
import { type CopyFilesOptions, copyFiles } from './copy-files.ts';
import { type CopySource, type OpenSource, SOURCE_RETRIES } from './copy-source.ts';
import { type CopyPlan, planCopy } from './plan-copy.ts';

/** How often a copy is planned anew because the source has changed. */
const MAX_CHANGES = 3;

export interface SyncOptions extends CopyFilesOptions {
  readonly open: OpenSource;
  readonly destination: string;
  /** Only compares. */
  readonly dryRun: boolean;
  readonly keep: number;
}

export interface SyncReport {
  /** `copied`: the destination leads to a new copy; `current`: it had it already; `planned`: of a dry run. */
  readonly state: 'copied' | 'current' | 'planned';
  readonly source: string;
  readonly destination: string;
  /** The folder that the destination leads to; null of a dry run. */
  readonly copy: string | null;
  readonly generation: string;
  readonly previous: string | null;
  readonly files: { readonly all: number; readonly copied: number; readonly present: number };
  /** `transferred`: of a dry run, what would be. */
  readonly bytes: { readonly all: number; readonly transferred: number };
  readonly removed: readonly string[];
}

/**
 * Copies an index, so that the destination leads to the old state or to the whole new one at any moment. Killed at any moment, the same
 * call resumes.
 *
 * @throws TrawlError of the source or the destination; what was copied is kept.
 */
export async function syncIndex(options: SyncOptions): Promise<SyncReport> {
  const folder = new CopiesFolder(options.destination);
  if (options.dryRun) {
    // Only where there is a lock, because a dry run makes nothing.
    const lock = existsSync(folder.root) ? folder.lock() : undefined;
    try {
      return await dryRun(folder, options);
    } finally {
      lock?.release();
    }
  }
  const lock = folder.lock();
  try {
    for (let changes = 0; ; changes++) {
      try {
        return await copyOnce(folder, options);
      } catch (error) {
        if (!(error instanceof TrawlError) || error.code !== 'SOURCE_CHANGED' || changes === MAX_CHANGES) throw error;
        options.note(`${error.message} Compared again.`);
      }
    }
  } finally {
    lock.release();
  }
}

async function dryRun(folder: CopiesFolder, options: SyncOptions): Promise<SyncReport> {
  return withSource(options, async (source, snapshot) => {
    checkAdopted(folder, snapshot);
    const plan = await planCopy(folder, snapshot, source, options.signal);
    const current = folder.current();
    const isCurrent = current !== undefined && folder.has(current, snapshot);
    const report = syncReport(folder, source, snapshot, plan);
    return { ...report, bytes: { ...report.bytes, transferred: isCurrent ? 0 : plan.missingBytes } };
  });
}

async function copyOnce(folder: CopiesFolder, options: SyncOptions): Promise<SyncReport> {
  return withSource(options, async (source, snapshot) => {
    checkAdopted(folder, snapshot);
    const { intact: existing, damaged } = await existingCopies(folder, snapshot, options);
    if (existing !== undefined) {
      const report = syncReport(folder, source, snapshot, { files: [], missingBytes: 0 });
      const isCurrent = folder.current() === existing;
      if (!isCurrent) await folder.pointTo(existing);
      return {
        ...report,
        state: isCurrent ? 'current' : 'copied',
        copy: folder.folderOf(existing),
        removed: await folder.prune(options.keep, source.folder),
      };
    }
    const plan = await planCopy(folder, snapshot, source, options.signal);
    const report = syncReport(folder, source, snapshot, plan);
    await requireFreeBytes({ path: folder.root, bytes: plan.missingBytes, what: 'the missing files' });
    const transferred = await copyFiles(folder, source, snapshot, plan, options);
    const staging = folder.folderOf(folder.staging(snapshot.id));
    await writeManifests(staging, snapshot);
    // Sizes, headers, adopted files: what a server checks.
    openIndexDirectory(staging);
    const name = await folder.complete(snapshot.id);
    await folder.pointTo(name);
    for (const each of damaged) if (folder.mayDiscard(each, source.folder)) await folder.discard(each);
    return {
      ...report,
      state: 'copied',
      copy: folder.folderOf(name),
      bytes: { ...report.bytes, transferred },
      removed: await folder.prune(options.keep, source.folder),
    };
  });
}

async function withSource<T>(
  { open, retry, signal, note }: SyncOptions,
  use: (source: CopySource, snapshot: IndexSnapshot) => Promise<T>,
): Promise<T> {
  const policy = { ...SOURCE_RETRIES, ...defined(retry) };
  const source = await withTransferRetries(() => open(signal), { what: 'source', policy, signal, note });
  try {
    const snapshot = await readSnapshot(source.shown, (path) =>
      withTransferRetries(() => source.readManifest(path, signal), { what: path, policy, signal, note }),
    );
    return await use(source, snapshot);
  } finally {
    await source.close();
  }
}

/** An intact copy of the snapshot, preferably the current one, and the copies of it that have changed since they were made. */
async function existingCopies(
  folder: CopiesFolder,
  snapshot: IndexSnapshot,
  options: CopyFilesOptions,
): Promise<{ readonly intact: string | undefined; readonly damaged: readonly string[] }> {
  const current = folder.current();
  const names = [...(current === undefined ? [] : [current]), ...folder.copies().filter((name) => name !== current)];
  const damaged: string[] = [];
  for (const name of names.filter((each) => folder.has(each, snapshot))) {
    const problem = await copyProblem(folder, name, snapshot, options);
    if (problem === undefined) return { intact: name, damaged };
    options.note(`${folder.folderOf(name)} has changed since it was copied (${problem}); a new copy is made.`);
    damaged.push(name);
  }
  return { intact: undefined, damaged };
}

async function copyProblem(
  folder: CopiesFolder,
  name: string,
  snapshot: IndexSnapshot,
  { check, signal }: CopyFilesOptions,
): Promise<string | undefined> {
  const journal = folder.journal(name);
  for (const file of snapshot.files) {
    const isChecked = journal.isChecked(file);
    if (isChecked && !check) continue;
    if (!existsSync(join(folder.folderOf(name), file.path))) return `${file.path} is missing`;
    const problem = await fileProblem(folder.folderOf(name), file, snapshot, signal);
    if (problem !== undefined) return `${file.path}: ${problem}`;
    // An index that was moved among the copies has no journal yet.
    if (!isChecked) journal.checked(file);
  }
  return undefined;
}

/** Files that the index uses where they are do not belong to it, and are not copied. */
function checkAdopted(folder: CopiesFolder, { id, adopted }: IndexSnapshot): void {
  const staging = folder.folderOf(folder.staging(id));
  const missing = adopted.find((path) => !existsSync(isAbsolute(path) ? path : join(staging, path)));
  if (missing === undefined) return;
  throw new TrawlError(
    'INDEX_FILE_MISSING',
    `The index uses the vectors in ${missing} where they are, outside of the index, so that they are not copied; and here is no such ` +
      'file. Copy the file to the same path, or import the vectors with `trawl import --copy`.',
  );
}

/** That of the index last, when all else is on the disk. */
async function writeManifests(staging: string, { texts, files }: IndexSnapshot): Promise<void> {
  const folders = new Set(
    [...texts.keys(), ...files.map(({ path }) => path)].map((path) => dirname(join(staging, path))),
  );
  for (const each of folders) {
    await mkdir(each, { recursive: true });
    await syncFolder(each);
  }
  for (const [path, text] of texts) {
    await writeFileDurably(join(staging, path), text).catch((error: unknown) => {
      throw writeFailure(error, join(staging, path));
    });
  }
}

/** The generation of the index at the destination; null if there is none. */
function generationAt(destination: string): string | null {
  try {
    return existsSync(join(destination, INDEX_MANIFEST_FILE)) ? readIndexManifest(destination).generation : null;
  } catch {
    // A damaged index is replaced, too.
    return null;
  }
}

function syncReport(
  { destination }: CopiesFolder,
  source: CopySource,
  { manifest, files }: IndexSnapshot,
  plan: CopyPlan,
): SyncReport {
  const copied = plan.files.filter(({ present }) => present === undefined).length;
  return {
    state: 'planned',
    source: source.shown,
    destination,
    copy: null,
    generation: manifest.generation,
    previous: generationAt(destination),
    files: { all: files.length, copied, present: files.length - copied },
    bytes: { all: plan.files.reduce((sum, { bytes }) => sum + bytes, 0), transferred: 0 },
    removed: [],
  };
}
