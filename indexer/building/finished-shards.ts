import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { shardFolderName } from '../index-files.ts';
import { type Contrast, settingsDiffer, settingsOfShard } from './build-settings.ts';

export interface FinishedShard {
  /** Name of its folder in the index. */
  readonly name: string;
  readonly manifest: ShardManifest;
}

/** Limit of the shards that a message lists. */
const LISTED = 10;

/**
 * The shards of an index in corpus order. They must have been built with the same settings and together contain each input
 * position once.
 *
 * @throws TrawlError SHARDS_INCOMPLETE, SHARDS_DIFFER; errors of the shards' manifests.
 */
export function finishedShards(folder: string): FinishedShard[] {
  const shards = readShards(folder);
  const [first, ...others] = shards;
  // A single shard needs no input record, and one from a pipe has none.
  if (others.length === 0 && first!.manifest.input === undefined) return [first!];
  for (const { name, manifest } of shards) if (manifest.input === undefined) throw missingInput(join(folder, name));
  for (const other of others) checkSettings(folder, first!, other);
  const ordered = shards.toSorted((a, b) => {
    const [x, y] = [a.manifest.input!, b.manifest.input!];
    return x.first - y.first || x.end - y.end || (a.name < b.name ? -1 : 1);
  });
  checkRanges(folder, ordered);
  return ordered;
}

/** @throws TrawlError SHARDS_INCOMPLETE if one is unfinished. */
function readShards(folder: string): FinishedShard[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.startsWith('shard-'))
    .map(({ name }) => name)
    .sort();
  if (names.length === 0) throw incomplete(folder, 'it has no shards');
  const unfinished = names.filter((name) => !existsSync(join(folder, name, SHARD_MANIFEST_FILE)));
  if (unfinished.length > 0) {
    throw incomplete(folder, `${listed(unfinished)} unfinished. Run the same job again to resume it`);
  }
  return names.map((name) => ({ name, manifest: readShardManifest(join(folder, name)) }));
}

function checkSettings(folder: string, first: FinishedShard, other: FinishedShard): void {
  const contrast: Contrast = (one, another) => `${another} here, ${one} in ${first.name}`;
  const differences = settingsDiffer(settingsOfShard(first.manifest), settingsOfShard(other.manifest), contrast);
  if (differences.length === 0) return;
  throw new TrawlError(
    'SHARDS_DIFFER',
    `${join(folder, other.name)} was built with other settings than ${first.name}: ${differences.join('; ')}. Move the ` +
      'wrong shard away, or build it again with the settings of the others.',
    { details: { shard: other.name, differences } },
  );
}

/** Every input position must be in one shard. With more shards than positions, some shards are empty. */
function checkRanges(folder: string, ordered: readonly FinishedShard[]): void {
  const { positions, shards } = ordered[0]!.manifest.input!;
  let end = 0;
  let before = '';
  for (const { name, manifest } of ordered) {
    const input = manifest.input!;
    if (input.first > end) throw incomplete(folder, missingShards(folder, ordered, end, input.first));
    if (input.first < end) {
      const lines = `lines ${input.first + 1} to ${Math.min(end, input.end)} of the corpus`;
      throw incomplete(folder, `${before} and ${name} both contain ${lines}. Move one of them away`);
    }
    end = input.end;
    before = name;
  }
  if (end < positions || ordered.length < shards) {
    throw incomplete(folder, missingShards(folder, ordered, end, positions));
  }
  if (ordered.length > shards) {
    throw incomplete(folder, `it has ${ordered.length} shards instead of ${shards}. Move the wrong ones away`);
  }
}

function missingShards(folder: string, ordered: readonly FinishedShard[], first: number, end: number): string {
  const { shards } = ordered[0]!.manifest.input!;
  const missing = Array.from({ length: shards }, (_, i) => i).filter(
    (i) => !existsSync(join(folder, shardFolderName(i))),
  );
  return `no shard contains lines ${first + 1} to ${end} of the corpus: ${listed(missing.map((i) => `${i}/${shards}`))} missing`;
}

function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  return `${names.slice(0, LISTED).join(', ')}${more} ${names.length === 1 ? 'is' : 'are'}`;
}

function incomplete(folder: string, reason: string): TrawlError {
  return new TrawlError('SHARDS_INCOMPLETE', `${folder}: ${reason}.`, { details: { folder } });
}

function missingInput(path: string): TrawlError {
  return new TrawlError(
    'SHARDS_DIFFER',
    `${path} cannot be merged: its manifest does not say which part of the corpus it contains, because the corpus came ` +
      'from a pipe. Build it again from files.',
  );
}
