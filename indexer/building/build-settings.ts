import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/errors.ts';
import type { Bm25Settings } from '../../src/lexical-index/lexical-settings.ts';
import {
  BUILD_FILE,
  BuildRecord,
  type ReadingRecord,
  readRecord,
  UpdateRecord,
} from '../../src/manifest/build-records.ts';
import type { ModelIdentity } from '../../src/manifest/model-identity.ts';
import type { Bm25Record } from '../../src/manifest/schemas.ts';
import { writeJsonDurably } from '../../src/system/durable-file.ts';
import { type PrecomputedVectors, vectorsRecord } from '../vectors/precomputed-vectors.ts';
import type { WorkFolder } from './keep-on-failure.ts';

export interface BuildSettings {
  /** Null for an index without vectors. */
  readonly model: ModelIdentity | null;
  readonly passageTemplate: string;
  readonly corpusOptions: CorpusOptions;
  readonly shards: number;
  /** Undefined for a pipe. */
  readonly scan: CorpusScan | undefined;
  readonly bm25?: Bm25Settings | undefined;
  readonly vectors?: PrecomputedVectors | undefined;
}

/** Records the settings that determine the content of an index. Builds with equal records produce equal indexes. */
export function buildRecord({
  model,
  passageTemplate,
  corpusOptions,
  shards,
  scan,
  bm25,
  vectors,
}: BuildSettings): BuildRecord {
  return {
    format: 'trawl-build',
    version: 1,
    model,
    passageTemplate,
    reading: readingRecord(corpusOptions),
    shards,
    corpus: scan === undefined ? null : corpusFiles(scan),
    ...(bm25 === undefined ? {} : { bm25: bm25Record(bm25) }),
    ...(vectors === undefined ? {} : { vectors: vectorsRecord(vectors) }),
  };
}

/** The settings in the form of the manifests. */
export function bm25Record(settings: Bm25Settings): Bm25Record {
  return { ...settings, fields: [...settings.fields] };
}

export function readingRecord(options: CorpusOptions): ReadingRecord {
  return {
    format: options.format ?? null,
    tsvLayout: options.tsvLayout ?? 'auto',
    tsvIdType: options.tsvIdType ?? 'auto',
    skipBadLines: options.skipBadLines ?? false,
  };
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

/** Describes the differences, such as `number of shards: 4, now 8`. */
function settingsDiffer(begun: BuildRecord, wanted: BuildRecord): string[] {
  return [
    ...modelDiffers(begun.model, wanted.model),
    ...valuesDiffer('passage template', begun.passageTemplate, wanted.passageTemplate),
    ...fieldsDiffer('option', begun.reading, wanted.reading),
    ...valuesDiffer('number of shards', begun.shards, wanted.shards),
    ...corpusDiffers(begun.corpus, wanted.corpus),
    ...bm25Differs(begun.bm25, wanted.bm25),
    ...vectorsDiffer(begun.vectors, wanted.vectors),
  ];
}

/** Compares the encoders of two build records or of two shard manifests. */
export function modelDiffers(begun: ModelIdentity | null, wanted: ModelIdentity | null): string[] {
  if (begun === null || wanted === null) {
    return begun === wanted ? [] : [`vectors: ${begun === null ? 'without' : 'with'} a model, now the other way`];
  }
  return fieldsDiffer('model', begun, wanted);
}

/** Compares the BM25 settings of two build records or of two shard manifests. */
export function bm25Differs(begun: Bm25Settings | undefined, wanted: Bm25Settings | undefined): string[] {
  if (begun === undefined || wanted === undefined) {
    return begun === wanted
      ? []
      : [`BM25: ${begun === undefined ? 'without --bm25, now with it' : 'with --bm25, now without it'}`];
  }
  return fieldsDiffer('BM25', begun, wanted);
}

/** Compares the vectors of two build records, or of two shards' manifests. */
export function vectorsDiffer<T extends object>(begun: T | undefined, wanted: T | undefined): string[] {
  if (begun === undefined || wanted === undefined) {
    return begun === wanted ? [] : ['vectors: embedded in one, from files in the other'];
  }
  return fieldsDiffer('vectors', begun, wanted);
}

type Files = readonly Readonly<{ name: string; bytes: number; sha256: string }>[];

export function corpusDiffers(begun: Files | null, wanted: Files | null): string[] {
  if (begun === null || wanted === null) {
    return begun === wanted ? [] : ['corpus: files in one, a pipe in the other'];
  }
  if (begun.length !== wanted.length) return [`corpus: ${begun.length} files, now ${wanted.length}`];
  return begun.flatMap((file, i) => {
    const now = wanted[i]!;
    if (file.name !== now.name) return [`corpus file ${i + 1}: ${file.name}, now ${now.name}`];
    if (file.bytes !== now.bytes) return [`${file.name}: ${file.bytes} bytes, now ${now.bytes}`];
    return file.sha256 === now.sha256 ? [] : [`${file.name}: its content has changed`];
  });
}

export function fieldsDiffer(what: string, begun: object, wanted: object): string[] {
  const names = new Set([...Object.keys(begun), ...Object.keys(wanted)]);
  return [...names].flatMap((name) =>
    valuesDiffer(
      `${what} ${name}`,
      (begun as Record<string, unknown>)[name],
      (wanted as Record<string, unknown>)[name],
    ),
  );
}

export function valuesDiffer(what: string, begun: unknown, wanted: unknown): string[] {
  return isDeepStrictEqual(begun, wanted) ? [] : [`${what}: ${JSON.stringify(begun)}, now ${JSON.stringify(wanted)}`];
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
  // A pipe cannot be read again, so its build cannot be resumed.
  if (restart || begun === undefined || (begun?.corpus === null && wanted.corpus === null)) {
    await work.clear();
  } else {
    const isUpdate = begun === null && readRecord(UpdateRecord, path) !== null;
    const differences =
      begun !== null
        ? settingsDiffer(begun, wanted)
        : [isUpdate ? 'it is an update of the index' : `${BUILD_FILE} cannot be read`];
    if (differences.length > 0) throw buildDiffers(folder, differences);
    return;
  }
  await writeJsonDurably(path, wanted);
}

export function buildDiffers(folder: string, differences: readonly string[]): TrawlError {
  return new TrawlError(
    'BUILD_DIFFERS',
    `${folder} has an unfinished build with other settings: ${differences.join('; ')}. Use the same settings to resume ` +
      'it, or remove it with --restart.',
    { details: { folder, differences } },
  );
}
