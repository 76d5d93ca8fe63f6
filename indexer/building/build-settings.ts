import { basename, join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import {
  comparedFields,
  compareProbes,
  describeSimilarities,
  haveSameProbes,
} from '../../src/encoder/identity/same-model.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import {
  BUILD_FILE,
  BuildRecord,
  type ReadingRecord,
  readRecord,
  UpdateRecord,
} from '../../src/index/manifest/build-records.ts';
import type { Bm25Record, ColumnRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { vectorsRecord } from '../vectors/precomputed-vectors.ts';
import type { Build } from './build.ts';
import { clearFolder, hasShards } from './build-lock.ts';

/**
 * Records the settings that determine the content of an index. Builds with equal records produce equal indexes, except from pipes,
 * whose content is not recorded.
 */
export function buildRecord(
  { space, passageTemplate, reading, bm25, columns, vectors }: Build,
  shards: number,
  scan: CorpusScan | undefined,
): BuildRecord {
  return {
    format: 'trawl-build',
    version: 1,
    model: space?.model ?? null,
    passageTemplate,
    reading,
    shards,
    corpus: scan === undefined ? null : corpusFiles(scan),
    bm25: bm25 && bm25Record(bm25),
    columns: columns.length === 0 ? undefined : columnRecords(columns),
    vectors: vectors && vectorsRecord(vectors),
  };
}

export function bm25Record(settings: Bm25Settings): Bm25Record {
  return { ...settings, fields: [...settings.fields] };
}

export function columnRecords(columns: readonly Column[]): ColumnRecord[] {
  return columns.map(({ name, type }) => ({ name, type }));
}

/** The corpus files for the record of a build. */
export function corpusFiles(scan: CorpusScan): NonNullable<BuildRecord['corpus']> {
  return scan.files.map(({ path, sizeBytes, sha256, positions }) => ({
    name: basename(path),
    bytes: sizeBytes,
    sha256,
    positions,
  }));
}

/** Puts two different values into words. */
export type Contrast = (one: string, other: string) => string;

/** Contrasts an unfinished build with the command. */
const thenAndNow: Contrast = (begun, wanted) => `${begun}, now ${wanted}`;

/** The settings that are compared: the record of a build, the manifest of a shard and the options of a build all have them. */
interface Settings {
  readonly model: ModelIdentity | null;
  readonly passageTemplate: string;
  readonly reading: ReadingRecord | undefined;
  readonly bm25?: Bm25Settings;
  readonly columns?: readonly Column[];
  /** Null for a pipe. */
  readonly corpus: Files | null;
  readonly vectors?: object;
  /** How the corpus is divided, by names for messages: `number of shards`, `lines of the corpus`. */
  readonly division: Readonly<Record<string, number>>;
}

/** The settings in the manifest of a shard. All shards of an index have the same. */
export function settingsOfShard({ model, corpus, bm25, columns, input }: ShardManifest): Settings {
  const { passageTemplate, files } = corpus;
  return { model, passageTemplate, corpus: files, bm25: bm25?.made, columns, ...settingsOfInput(input) };
}

/** The settings in the field `input` of a shard's manifest. */
export function settingsOfInput(input: ShardManifest['input']): Pick<Settings, 'reading' | 'vectors' | 'division'> {
  return {
    reading: input?.reading,
    vectors: input?.vectors,
    division: input === undefined ? {} : { 'number of shards': input.shards, 'lines of the corpus': input.positions },
  };
}

/** Describes the differences, such as `number of shards: 4, now 8`. */
export function settingsDiffer(begun: Settings, wanted: Settings, contrast: Contrast = thenAndNow): string[] {
  return [
    ...modelDiffers(begun.model, wanted.model, contrast),
    ...valuesDiffer('passage template', begun.passageTemplate, wanted.passageTemplate, contrast),
    ...readingDiffers(begun.reading, wanted.reading, contrast),
    ...partDiffers('BM25', begun.bm25, wanted.bm25, ['without --bm25', 'with --bm25'], contrast),
    ...columnsDiffer(begun.columns, wanted.columns, contrast),
    ...partDiffers('vectors', begun.vectors, wanted.vectors, ['embedded', 'from files'], contrast),
    ...fieldsDiffer('', begun.division, wanted.division, contrast),
    ...corpusDiffers(begun.corpus, wanted.corpus, contrast),
  ];
}

/** Work that was begun without `skipBadLines` met no bad line, so it may go on with it. */
export function readingDiffers(
  begun: ReadingRecord | undefined,
  wanted: ReadingRecord | undefined,
  contrast: Contrast = thenAndNow,
): string[] {
  const skipBadLines = wanted?.skipBadLines === true || begun?.skipBadLines === true;
  return fieldsDiffer('option', begun === undefined ? {} : { ...begun, skipBadLines }, wanted ?? {}, contrast);
}

export interface FinishedShard {
  /** Name of its folder in the index. */
  readonly name: string;
  readonly manifest: ShardManifest;
}

/** @throws TrawlError SHARDS_DIFFER if two shards of an index were built with different settings. */
export function checkSameSettings(folder: string, first: FinishedShard, other: FinishedShard): void {
  const contrast: Contrast = (one, another) => `${another} here, ${one} in ${first.name}`;
  const [one, another] = [first, other].map(({ manifest }) => {
    const settings = settingsOfShard(manifest);
    // A shard that has no bad line is the same with and without the option.
    return { ...settings, reading: settings.reading && { ...settings.reading, skipBadLines: true } };
  });
  const differences = settingsDiffer(one!, another!, contrast);
  if (differences.length === 0) return;
  throw new TrawlError(
    'SHARDS_DIFFER',
    `${join(folder, other.name)} was built with other settings than ${first.name}: ${differences.join('; ')}. Move the ` +
      'wrong shard away, or build it again with the settings of the others.',
    { details: { shard: other.name, differences } },
  );
}

function modelDiffers(begun: ModelIdentity | null, wanted: ModelIdentity | null, contrast: Contrast): string[] {
  if (begun === null || wanted === null) {
    return begun === wanted ? [] : [`model: ${contrast(begun?.name ?? 'none', wanted?.name ?? 'none')}`];
  }
  const differences = fieldsDiffer('model', comparedFields(begun), comparedFields(wanted), contrast);
  if (differences.length > 0 || haveSameProbes(begun, wanted)) return differences;
  const similarities = compareProbes(begun.endpoint!.probes, wanted.endpoint!.probes);
  return [`vectors of the endpoint: other ones for its probes (similarities: ${describeSimilarities(similarities)})`];
}

/** Compares a part of the settings that may be absent. `absent` and `present` are its words in messages. */
function partDiffers(
  what: string,
  begun: object | undefined,
  wanted: object | undefined,
  [absent, present]: readonly [string, string],
  contrast: Contrast,
): string[] {
  if (begun !== undefined && wanted !== undefined) return fieldsDiffer(what, begun, wanted, contrast);
  const words = (part: object | undefined): string => (part === undefined ? absent : present);
  return wordsDiffer(what, words(begun), words(wanted), contrast);
}

/** Compares columns and their order, which is the order of their files. */
export function columnsDiffer(
  begun: readonly Column[] = [],
  wanted: readonly Column[] = [],
  contrast: Contrast = thenAndNow,
): string[] {
  const words = (columns: readonly Column[]): string =>
    columns.map(({ name, type }) => `${name}:${type}`).join(', ') || 'none';
  return wordsDiffer('columns', words(begun), words(wanted), contrast);
}

type Files = readonly Readonly<{ name: string; bytes: number; sha256: string }>[];

export function corpusDiffers(begun: Files | null, wanted: Files | null, contrast: Contrast = thenAndNow): string[] {
  if (begun === null || wanted === null) {
    const words = (files: Files | null): string => (files === null ? 'a pipe' : 'files');
    return wordsDiffer('corpus', words(begun), words(wanted), contrast);
  }
  if (begun.length !== wanted.length) {
    return wordsDiffer('corpus', `${begun.length} files`, `${wanted.length} files`, contrast);
  }
  return begun.flatMap((file, i) => {
    const other = wanted[i]!;
    if (file.name !== other.name) return wordsDiffer(`corpus file ${i + 1}`, file.name, other.name, contrast);
    if (file.bytes !== other.bytes) {
      return wordsDiffer(file.name, `${file.bytes} bytes`, `${other.bytes} bytes`, contrast);
    }
    return file.sha256 === other.sha256 ? [] : [`${file.name}: its content differs`];
  });
}

export function fieldsDiffer(what: string, begun: object, wanted: object, contrast: Contrast = thenAndNow): string[] {
  const names = new Set([...Object.keys(begun), ...Object.keys(wanted)]);
  return [...names].flatMap((name) =>
    valuesDiffer(
      what === '' ? name : `${what} ${name}`,
      (begun as Record<string, unknown>)[name],
      (wanted as Record<string, unknown>)[name],
      contrast,
    ),
  );
}

export function valuesDiffer(what: string, begun: unknown, wanted: unknown, contrast: Contrast = thenAndNow): string[] {
  return isSameJson(begun, wanted) ? [] : [`${what}: ${contrast(JSON.stringify(begun), JSON.stringify(wanted))}`];
}

function wordsDiffer(what: string, begun: string, wanted: string, contrast: Contrast): string[] {
  return begun === wanted ? [] : [`${what}: ${contrast(begun, wanted)}`];
}

/**
 * Records a build in its folder, or accepts an unfinished build with the same settings, to be resumed.
 *
 * @param restart removes an unfinished build instead.
 * @throws TrawlError BUILD_DIFFERS if the folder has other unfinished work.
 */
export async function claimFolder(folder: string, wanted: BuildRecord, restart: boolean): Promise<void> {
  const path = join(folder, BUILD_FILE);
  const begun = readRecord(BuildRecord, path);
  if (!restart && begun === undefined && hasShards(folder)) {
    throw buildDiffers(folder, ['its shards were built by jobs (--shard i/n)']);
  }
  // A build from a pipe is not resumed, because the pipe cannot be read again.
  const isPipe = begun?.corpus === null && wanted.corpus === null;
  if (!restart && begun !== undefined && !isPipe) {
    if (begun === null) {
      const isUpdate = readRecord(UpdateRecord, path) !== null;
      throw buildDiffers(folder, [isUpdate ? 'it is an update of the index' : `${BUILD_FILE} cannot be read`]);
    }
    const differences = settingsDiffer(settingsOfRecord(begun), settingsOfRecord(wanted));
    if (differences.length > 0) throw buildDiffers(folder, differences);
    if (!isSameJson(begun.reading, wanted.reading)) await writeJsonDurably(path, { ...begun, reading: wanted.reading });
    return;
  }
  await clearFolder(folder);
  await writeJsonDurably(path, wanted);
}

function settingsOfRecord(record: BuildRecord): Settings {
  return { ...record, division: { 'number of shards': record.shards } };
}

export function buildDiffers(folder: string, differences: readonly string[]): TrawlError {
  return new TrawlError(
    'BUILD_DIFFERS',
    `${folder} has an unfinished build with other settings: ${differences.join('; ')}. Use the same settings to resume ` +
      'it, or remove it with --restart.',
    { details: { folder, differences } },
  );
}
