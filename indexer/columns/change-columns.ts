import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { writeIndexManifest, writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import { type IndexDirectory, type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { columnRecords } from '../building/build-settings.ts';
import { makeColumns } from './make-columns.ts';

export interface ColumnChanges {
  /** Columns to add. One that the index has with the same type stays as it is. */
  readonly add: readonly Column[];
  readonly drop: readonly string[];
  readonly onStep: (doing: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Adds columns for filters to an index, from its stored passages, or removes them. Rows, vectors and generation do not change. Shards
 * get the new columns first, then the index manifest names them, then shards lose those that it no longer names. So an index can be
 * opened at any moment, and the same call resumes a stopped or killed one.
 *
 * @throws TrawlError USAGE for a column to add that the index has with another type, or one to drop that it does not have;
 * CORPUS_BAD_LINE for a value of another type; DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors of the index's files.
 * @returns the number of shards that got columns.
 */
export async function changeColumns(
  { folder, manifest, shards }: IndexDirectory,
  { add, drop, onStep, signal }: ColumnChanges,
): Promise<number> {
  const columns = nextColumns(manifest, add, drop);
  const { columns: before = [], ...rest } = manifest;
  const next: IndexManifest = { ...rest, columns: columns.length === 0 ? undefined : columnRecords(columns) };
  let made = 0;
  const complete: OpenedShard[] = [];
  for (const shard of shards) {
    const named = shard.manifest.columns ?? [];
    const missing = columns.filter((column) => sameColumn(named, column) === undefined);
    if (missing.length === 0) {
      complete.push(shard);
      continue;
    }
    onStep(`columns of ${shard.folder}`);
    // A killed call may have left a column that this one adds with another type.
    const kept = named.filter(({ name }) => hasName(before, name) || !hasName(missing, name));
    const trimmed = withColumns(shard.manifest, kept);
    const inUse = new Set(shard.manifest.files.map(({ path }) => path));
    const passages = within(shard.folder, shard.manifest.passages.path);
    const written = await makeColumns(shard.folder, passages, missing, { inUse, signal });
    const files = [...trimmed.files, ...written.files];
    const changed = withColumns({ ...trimmed, files }, [...kept, ...written.columns]);
    await writeShardManifest(shard.folder, changed);
    complete.push({ ...shard, manifest: changed });
    made++;
  }
  if (!isSameJson(next, manifest)) await writeIndexManifest(folder, next);
  for (const shard of complete) {
    const named = shard.manifest.columns ?? [];
    const kept = columns.map((column) => sameColumn(named, column)!);
    if (kept.length === named.length && kept.every((column, i) => column === named[i])) continue;
    await writeShardManifest(shard.folder, withColumns(shard.manifest, kept));
  }
  return made;
}

/** The columns of the index after the change, in the order in which they were added. */
function nextColumns(manifest: IndexManifest, add: readonly Column[], drop: readonly string[]): readonly Column[] {
  const before = manifest.columns ?? [];
  const unknown = drop.find((name) => !hasName(before, name));
  if (unknown !== undefined) {
    const known = before.map(({ name }) => name).join(', ') || 'no columns';
    throw new TrawlError('USAGE', `--drop-column is ${JSON.stringify(unknown)}, but the index has ${known}.`);
  }
  const kept = before.filter(({ name }) => !drop.includes(name));
  for (const { name, type } of add) {
    const known = kept.find((column) => column.name === name);
    if (known === undefined || known.type === type) continue;
    throw new TrawlError(
      'USAGE',
      `--column is ${name}:${type}, but the index has the column as ${known.type}. Add --drop-column ${name} to make it again.`,
    );
  }
  return [...kept, ...add.filter(({ name }) => !hasName(kept, name))];
}

function hasName(columns: readonly Column[], name: string): boolean {
  return columns.some((column) => column.name === name);
}

function sameColumn<T extends Column>(columns: readonly T[], { name, type }: Column): T | undefined {
  return columns.find((column) => column.name === name && column.type === type);
}

/** The manifest with these columns, and without the records of files of others. */
function withColumns(manifest: ShardManifest, columns: NonNullable<ShardManifest['columns']>): ShardManifest {
  const { columns: before = [], ...rest } = manifest;
  const paths = new Set(columns.map(({ path }) => path));
  const dropped = new Set(before.map(({ path }) => path).filter((path) => !paths.has(path)));
  const files = rest.files.filter(({ path }) => !dropped.has(path));
  return { ...rest, columns: columns.length === 0 ? undefined : columns, files };
}
