import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type Type from 'typebox';
import { Check, Errors } from 'typebox/schema';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import { isWritten } from '../../encoder/written-vectors.ts';
import { INDEX_MANIFEST_FILE, IndexManifest } from './index-manifest.ts';
import { MANIFEST_VERSIONS } from './schemas.ts';
import { SHARD_MANIFEST_FILE, ShardManifest } from './shard-manifest.ts';
import { checkChecksum } from './write-manifest.ts';

/** @throws TrawlError INDEX_NOT_FOUND, INDEX_MANIFEST_INVALID, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED. */
export function readIndexManifest(folder: string): IndexManifest {
  const file = join(folder, INDEX_MANIFEST_FILE);
  const text = readText(file, () => {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${folder}: no index found (${INDEX_MANIFEST_FILE} is missing). Build one with \`trawl index\`; an unfinished build ` +
        'is in a folder whose name ends in .partial.',
    );
  });
  return parseIndexManifest(file, text);
}

/**
 * @param file where the text is from, for messages.
 * @throws TrawlError INDEX_MANIFEST_INVALID, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED.
 */
export function parseIndexManifest(file: string, text: string): IndexManifest {
  const manifest = parse(file, text, 'trawl-index', IndexManifest);
  checkVectorFields(file, manifest);
  let row = 0;
  for (const shard of manifest.shards) {
    if (shard.firstRow !== row) {
      const { path, firstRow } = shard;
      throw invalid(file, `shard ${path} starts at row ${firstRow}, but the previous shard ends at row ${row}`);
    }
    row += shard.rows;
  }
  if (row !== manifest.rows)
    throw invalid(file, `the shards have ${row} rows together, but the index has ${manifest.rows}`);
  return manifest;
}

/** @throws TrawlError INDEX_FILE_MISSING, INDEX_MANIFEST_INVALID, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED. */
export function readShardManifest(folder: string): ShardManifest {
  const file = join(folder, SHARD_MANIFEST_FILE);
  const text = readText(file, () => {
    throw new TrawlError('INDEX_FILE_MISSING', `${file} is missing. Restore it or build the index again.`);
  });
  return parseShardManifest(file, text);
}

/** As `parseIndexManifest`. */
export function parseShardManifest(file: string, text: string): ShardManifest {
  const manifest = parse(file, text, 'trawl-shard', ShardManifest);
  checkVectorFields(file, manifest);
  return manifest;
}

function readText(file: string, onMissing: () => never): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) onMissing();
    throw new TrawlError('INDEX_MANIFEST_INVALID', `${file}: cannot be read (${(error as Error).message}).`, {
      cause: error,
    });
  }
}

function parse<Schema extends Type.TSchema>(
  file: string,
  text: string,
  format: string,
  schema: Schema,
): Type.Static<Schema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    const message = `${file}: is not valid JSON (${(cause as Error).message}).`;
    throw new TrawlError('INDEX_MANIFEST_INVALID', message, { cause });
  }
  checkFormat(file, isObject(json) ? json : {}, format);
  const manifest = checkChecksum(file, json);
  if (Check(schema, manifest)) return manifest as Type.Static<Schema>;
  const [, [first]] = Errors(schema, manifest);
  throw invalid(
    file,
    first === undefined
      ? 'its fields do not match the schema'
      : `${first.instancePath || 'the manifest'} ${first.message}`,
  );
}

function checkFormat(
  file: string,
  head: { readonly format?: unknown; readonly version?: unknown },
  format: string,
): void {
  if (head.format !== format) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${file}: its field "format" is ${JSON.stringify(head.format) ?? 'missing'}; expected "${format}".`,
    );
  }
  const versions: readonly unknown[] = Object.values(MANIFEST_VERSIONS);
  if (!versions.includes(head.version)) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${file}: its version is ${JSON.stringify(head.version) ?? 'missing'}; this program reads version ${versions.slice(0, -1).join(', ')} and ${versions.at(-1)}. ` +
        'Use the program that wrote it, or build the index again.',
      { details: { found: head.version, supported: versions } },
    );
  }
}

/** With vectors, all fields about them have values; without vectors, none has, and there are inverted indexes. */
function checkVectorFields(
  file: string,
  { version, model, metric, dimension, bm25 }: IndexManifest | ShardManifest,
): void {
  const hasVectors = version !== MANIFEST_VERSIONS.withoutVectors;
  const isOfEndpoint = version === MANIFEST_VERSIONS.ofEndpoint;
  if (model !== null && (model.endpoint !== undefined) !== isOfEndpoint) {
    throw invalid(file, `/model/endpoint must have ${isOfEndpoint ? 'a value' : 'no value'} in version ${version}`);
  }
  const isWrittenVersion = version === MANIFEST_VERSIONS.written;
  if (isWritten(model) !== isWrittenVersion) {
    throw invalid(file, `/model/architecture must ${isWrittenVersion ? '' : 'not '}be written in version ${version}`);
  }
  if (
    model !== null &&
    !isOfEndpoint &&
    !isWrittenVersion &&
    [model.precision, ...Object.values(model.maxTokens)].includes(null)
  ) {
    throw invalid(file, `/model/precision and /model/maxTokens must have values in version ${version}`);
  }
  const wrong = Object.entries({
    dimension: hasVectors ? dimension > 0 : dimension === 0,
    metric: (metric !== null) === hasVectors,
    model: (model !== null) === hasVectors,
    bm25: hasVectors || bm25 !== undefined,
  }).find(([, isRight]) => !isRight);
  if (wrong === undefined) return;
  const expected = hasVectors ? 'a value' : wrong[0] === 'bm25' ? 'inverted indexes' : 'no value';
  throw invalid(file, `/${wrong[0]} must have ${expected} in version ${version}`);
}

function invalid(file: string, reason: string): TrawlError {
  return new TrawlError('INDEX_MANIFEST_INVALID', `${file}: ${reason}. Restore it or build the index again.`);
}
