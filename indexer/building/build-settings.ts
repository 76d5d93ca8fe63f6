import { basename, join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import { compareProbes, describeSimilarities } from '../../src/encoder/identity/probe-vectors.ts';
import { comparedFields, haveSameProbes } from '../../src/encoder/identity/same-model.ts';
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
import type { WorkFolder } from './keep-on-failure.ts';

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

/** The settings in the form of the manifests. */
export function bm25Record(settings: Bm25Settings): Bm25Record {
  return { ...settings, fields: [...settings.fields] };
}

/** The columns in the form of the manifests. */
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

/** Words for two values that differ. */
export type Contrast = (one: string, other: string) => string;

/** For the settings of an unfinished build and those of the command. */
const thenAndNow: Contrast = (begun, wanted) => `${begun}, now ${wanted}`;

/** What the records of builds, the manifests of shards and the options of builds say alike. */
interface Settings {
  readonly model: ModelIdentity | null;
  readonly passageTemplate: string;
  readonly reading: ReadingRecord | undefined;
  readonly bm25?: Bm25Settings;
  readonly columns?: readonly Column[];
  /** Null for a pipe. */
  readonly corpus: Files | null;
  /** The vector files that are used instead of embedding. */
  readonly vectors?: object;
  /** How the corpus is divided: number of shards, lines of the corpus, part of a shard. */
  readonly division: Readonly<Record<string, number>>;
}

/** The part of a shard's manifest that depends on the settings. */
interface ShardSettings {
  readonly model: ModelIdentity | null;
  readonly corpus: { readonly files: Files; readonly passageTemplate: string };
  readonly bm25?: { readonly made: Bm25Settings };
  readonly columns?: readonly Column[];
  readonly input?: ShardManifest['input'];
}

/** The settings in the manifest of a shard. All shards of an index have the same. */
export function settingsOfShard({ model, corpus, bm25, columns, input }: ShardSettings): Settings {
  return {
    model,
    passageTemplate: corpus.passageTemplate,
    reading: input?.reading,
    corpus: corpus.files,
    bm25: bm25?.made,
    columns,
    vectors: input?.vectors,
    division: input === undefined ? {} : { 'number of shards': input.shards, 'lines of the corpus': input.positions },
  };
}

/** Describes the differences, such as `number of shards: 4, now 8`. */
export function settingsDiffer(begun: Settings, wanted: Settings, contrast: Contrast = thenAndNow): string[] {
  return [
    ...modelDiffers(begun.model, wanted.model, contrast),
    ...valuesDiffer('passage template', begun.passageTemplate, wanted.passageTemplate, contrast),
    ...fieldsDiffer('option', begun.reading ?? {}, wanted.reading ?? {}, contrast),
    ...bm25Differs(begun.bm25, wanted.bm25, contrast),
    ...columnsDiffer(begun.columns, wanted.columns, contrast),
    ...vectorsDiffer(begun.vectors, wanted.vectors, contrast),
    ...fieldsDiffer('', begun.division, wanted.division, contrast),
    ...corpusDiffers(begun.corpus, wanted.corpus, contrast),
  ];
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

function bm25Differs(begun: Bm25Settings | undefined, wanted: Bm25Settings | undefined, contrast: Contrast): string[] {
  if (begun === undefined || wanted === undefined) {
    const words = (settings: Bm25Settings | undefined): string =>
      `${settings === undefined ? 'without' : 'with'} --bm25`;
    return begun === wanted ? [] : [`BM25: ${contrast(words(begun), words(wanted))}`];
  }
  return fieldsDiffer('BM25', begun, wanted, contrast);
}

/** Compares columns and their order, which is the order of their files. */
export function columnsDiffer(
  begun: readonly Column[] = [],
  wanted: readonly Column[] = [],
  contrast: Contrast = thenAndNow,
): string[] {
  const words = (columns: readonly Column[]): string =>
    columns.map(({ name, type }) => `${name}:${type}`).join(', ') || 'none';
  return words(begun) === words(wanted) ? [] : [`columns: ${contrast(words(begun), words(wanted))}`];
}

function vectorsDiffer(begun: object | undefined, wanted: object | undefined, contrast: Contrast): string[] {
  if (begun === undefined || wanted === undefined) {
    const words = (files: object | undefined): string => (files === undefined ? 'embedded' : 'from files');
    return begun === wanted ? [] : [`vectors: ${contrast(words(begun), words(wanted))}`];
  }
  return fieldsDiffer('vectors', begun, wanted, contrast);
}

type Files = readonly Readonly<{ name: string; bytes: number; sha256: string }>[];

export function corpusDiffers(begun: Files | null, wanted: Files | null, contrast: Contrast = thenAndNow): string[] {
  if (begun === null || wanted === null) {
    const words = (files: Files | null): string => (files === null ? 'a pipe' : 'files');
    return begun === wanted ? [] : [`corpus: ${contrast(words(begun), words(wanted))}`];
  }
  if (begun.length !== wanted.length) {
    return [`corpus: ${contrast(`${begun.length} files`, `${wanted.length} files`)}`];
  }
  return begun.flatMap((file, i) => {
    const other = wanted[i]!;
    if (file.name !== other.name) return [`corpus file ${i + 1}: ${contrast(file.name, other.name)}`];
    if (file.bytes !== other.bytes) return [`${file.name}: ${contrast(`${file.bytes} bytes`, `${other.bytes} bytes`)}`];
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

/**
 * Records a build in its folder, or accepts an unfinished build with the same settings, to be resumed.
 *
 * @param restart removes an unfinished build instead.
 * @throws TrawlError BUILD_DIFFERS if the folder has other unfinished work.
 */
export async function claimFolder(work: WorkFolder, wanted: BuildRecord, restart: boolean): Promise<void> {
  const { folder } = work;
  const path = join(folder, BUILD_FILE);
  const begun = readRecord(BuildRecord, path);
  // There is nothing to resume: no build was begun, it is to be removed, or it read a pipe, which cannot be read again.
  if (restart || begun === undefined || (begun?.corpus === null && wanted.corpus === null)) {
    await work.clear();
  } else {
    const isUpdate = begun === null && readRecord(UpdateRecord, path) !== null;
    const differences =
      begun !== null
        ? settingsDiffer(ofRecord(begun), ofRecord(wanted))
        : [isUpdate ? 'it is an update of the index' : `${BUILD_FILE} cannot be read`];
    if (differences.length > 0) throw buildDiffers(folder, differences);
    return;
  }
  await writeJsonDurably(path, wanted);
}

function ofRecord(record: BuildRecord): Settings {
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
