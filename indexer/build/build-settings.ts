import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/errors.ts';
import {
  BUILD_FILE,
  BuildRecord,
  type ReadingRecord,
  readRecord,
  UpdateRecord,
} from '../../src/manifest/build-records.ts';
import type { ModelIdentity } from '../../src/manifest/model-identity.ts';
import { writeJsonDurably } from '../../src/manifest/write-json.ts';
import { type GivenVectors, vectorsRecord } from '../vectors/given-vectors.ts';

export interface BuildSettings {
  readonly model: ModelIdentity;
  readonly passageTemplate: string;
  readonly corpusOptions: CorpusOptions;
  readonly shards: number;
  /** Undefined for a corpus that can be read only once. */
  readonly scan: CorpusScan | undefined;
  readonly vectors?: GivenVectors | undefined;
}

/** Everything that decides what a build makes: two builds with equal records make equal indexes. */
export function buildRecord({
  model,
  passageTemplate,
  corpusOptions,
  shards,
  scan,
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
    ...(vectors === undefined ? {} : { vectors: vectorsRecord(vectors) }),
  };
}

export function readingRecord(options: CorpusOptions): ReadingRecord {
  return {
    format: options.format ?? null,
    tsvLayout: options.tsvLayout ?? 'auto',
    tsvIdType: options.tsvIdType ?? 'auto',
    skipBadLines: options.skipBadLines ?? false,
  };
}

/** For a record. */
export function corpusFiles(scan: CorpusScan): NonNullable<BuildRecord['corpus']> {
  return scan.files.map(({ path, sizeBytes, sha256, positions }) => ({
    name: basename(path),
    bytes: sizeBytes,
    sha256,
    positions,
  }));
}

/** What differs, as sentences for a person: `what: found, not expected`. */
export function settingsDiffer(begun: BuildRecord, wanted: BuildRecord): string[] {
  return [
    ...fieldsDiffer('model', begun.model, wanted.model),
    ...valuesDiffer('passage template', begun.passageTemplate, wanted.passageTemplate),
    ...fieldsDiffer('option', begun.reading, wanted.reading),
    ...valuesDiffer('number of shards', begun.shards, wanted.shards),
    ...corpusDiffers(begun.corpus, wanted.corpus),
    ...vectorsDiffer(begun.vectors, wanted.vectors),
  ];
}

/** Of two records of one kind: what stands in a build's note, or in shards' manifests. */
export function vectorsDiffer<T extends object>(begun: T | undefined, wanted: T | undefined): string[] {
  if (begun === undefined || wanted === undefined) {
    return begun === wanted ? [] : ['vectors: the one embeds them, the other takes them from files'];
  }
  return fieldsDiffer('vectors', begun, wanted);
}

type Files = readonly Readonly<{ name: string; bytes: number; sha256: string }>[];

export function corpusDiffers(begun: Files | null, wanted: Files | null): string[] {
  if (begun === null || wanted === null) {
    return begun === wanted ? [] : ['corpus: the one is files, the other comes through a pipe'];
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
 * Notes in `folder` what is built there, or finds that it is the same that was begun. `clear` removes what was begun
 * with other settings, where that was asked for.
 *
 * @throws TrawlError BUILD_DIFFERS.
 */
export async function claimFolder(
  folder: string,
  wanted: BuildRecord,
  { restart, clear }: { restart: boolean; clear: () => Promise<void> },
): Promise<void> {
  const path = join(folder, BUILD_FILE);
  const begun = readRecord(BuildRecord, path);
  // What came through a pipe cannot be had again up to where it was.
  if (restart || begun === undefined || (begun?.corpus === null && wanted.corpus === null)) {
    await clear();
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
    `${folder} was begun with other settings: ${differences.join('; ')}. Give the same again to go on, or remove what ` +
      'was begun with --restart.',
    { details: { folder, differences } },
  );
}
