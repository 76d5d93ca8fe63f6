import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Check, Errors } from 'typebox/schema';
import { TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import {
  Bm25Record,
  ColumnRecord,
  Count,
  FileRecord,
  Generation,
  MetricName,
  ModelRecord,
} from '../../src/index/manifest/schemas.ts';
import { checkChecksum } from '../../src/index/manifest/write-manifest.ts';
import { SEARCH_MODES } from '../../src/search/search-mode.ts';

export const BUNDLE_FILE = 'bundle.json';
export const BUNDLE_FORMAT = 'trawl-replay-bundle';

export const BUNDLE_VERSION = 1;

/** The files of a bundle. docs/replay.md describes them. */
export const BUNDLE_FILES = { answers: 'answers.sqlite', passages: 'passages.sqlite', rows: 'rows.f64' } as const;

/** Describes the bundle. It is in the folder before the folder gets its name, so a folder with this file is complete. */
export const BundleManifest = Type.Object({
  format: Type.Literal(BUNDLE_FORMAT),
  version: Type.Literal(BUNDLE_VERSION),
  /** The index that answered, as its server named it. */
  index: Type.Object({
    name: Type.String({ minLength: 1 }),
    generation: Generation,
    rows: Count,
    deletedRows: Count,
    dimension: Count,
    metric: Type.Union([MetricName, Type.Null()]),
    modes: Type.Array(Type.Enum([...SEARCH_MODES]), { minItems: 1 }),
    bm25: Type.Union([Bm25Record, Type.Null()]),
    columns: Type.Array(ColumnRecord),
    /** Whether each id names one passage, so that a passage can be looked up by its id. */
    uniqueIds: Type.Boolean(),
    /** Name of the reranker; null if no recorded answer was reranked. */
    reranker: Type.Union([Type.String(), Type.Null()]),
  }),
  model: Type.Union([ModelRecord, Type.Null()]),
  answers: Count,
  passages: Count,
  files: Type.Array(FileRecord),
  /** Name and version of the program that wrote the bundle, for information. */
  writer: Type.String(),
});
export type BundleManifest = Type.Static<typeof BundleManifest>;

/**
 * Reads the manifest of a bundle.
 *
 * @throws TrawlError INDEX_NOT_FOUND, INDEX_FILE_FOREIGN, INDEX_VERSION_UNSUPPORTED or INDEX_MANIFEST_INVALID.
 */
export function readBundleManifest(folder: string): BundleManifest {
  const file = join(folder, BUNDLE_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${folder}: no replay bundle found (${BUNDLE_FILE} cannot be read). Make one with trawl replay RECORDS --bundle OUT --index INDEX.`,
      { cause },
    );
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw invalid(file, `it is not valid JSON (${(cause as Error).message})`, cause);
  }
  if (!isObject(json)) throw invalid(file, 'it is not a JSON object');
  if (json.format !== BUNDLE_FORMAT) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${file}: its format is ${JSON.stringify(json.format)}; expected ${JSON.stringify(BUNDLE_FORMAT)}.`,
    );
  }
  if (json.version !== BUNDLE_VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${file}: has version ${JSON.stringify(json.version)}; this program reads version ${BUNDLE_VERSION}. Make the bundle again with this program, or serve it with the program that made it.`,
    );
  }
  const manifest = checkChecksum(file, json);
  if (Check(BundleManifest, manifest)) return manifest;
  const [, [fault]] = Errors(BundleManifest, manifest);
  throw invalid(file, `${fault?.instancePath || 'the document'} ${fault?.message ?? 'is wrong'}`);
}

/**
 * Compares the sizes and checksums of the files with the manifest. Reads them all.
 *
 * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED or INDEX_CHECKSUM_MISMATCH.
 */
export async function checkBundleFiles(folder: string, { files }: BundleManifest): Promise<void> {
  for (const path of Object.values(BUNDLE_FILES)) {
    if (!files.some((file) => file.path === path)) throw invalid(join(folder, BUNDLE_FILE), `it does not list ${path}`);
  }
  for (const { path, bytes, sha256 } of files) {
    const file = join(folder, path);
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.isFile() !== true) {
      throw new TrawlError('INDEX_FILE_MISSING', `${file} is missing. Copy the bundle again.`);
    }
    if (found.size !== bytes) {
      throw new TrawlError(
        'INDEX_FILE_TRUNCATED',
        `${file}: has ${found.size} bytes; ${BUNDLE_FILE} says ${bytes}. Copy the bundle again.`,
      );
    }
    const actual = await sha256OfFile(file);
    if (actual === sha256) continue;
    throw new TrawlError(
      'INDEX_CHECKSUM_MISMATCH',
      `${file}: its SHA-256 is ${actual}; ${BUNDLE_FILE} says ${sha256}. Copy the bundle again.`,
    );
  }
}

function invalid(file: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('INDEX_MANIFEST_INVALID', `${file}: ${reason}. Copy or make the bundle again.`, { cause });
}
