import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type Type from 'typebox';
import { Check, Errors } from 'typebox/schema';
import { isNodeError, TrawlError } from '../errors.ts';
import { INDEX_MANIFEST_FILE, INDEX_MANIFEST_VERSION, IndexManifest } from './index-manifest.ts';
import { checkChecksum } from './manifest-checksum.ts';
import { SHARD_MANIFEST_FILE, SHARD_MANIFEST_VERSION, ShardManifest } from './shard-manifest.ts';

/** @throws TrawlError INDEX_NOT_FOUND, INDEX_MANIFEST_INVALID, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED. */
export function readIndexManifest(folder: string): IndexManifest {
  const file = join(folder, INDEX_MANIFEST_FILE);
  const json = readJson(file, () => {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${folder}: no index there (${INDEX_MANIFEST_FILE} is missing). Build one with \`trawl index\`; a build that was ` +
        'stopped is in a folder whose name ends in .partial.',
    );
  });
  checkHead(file, json, 'trawl-index', INDEX_MANIFEST_VERSION);
  const manifest = check(file, IndexManifest, checkChecksum(file, json));
  let row = 0;
  for (const shard of manifest.shards) {
    if (shard.firstRow !== row) {
      throw invalid(file, `shard ${shard.path} begins at row ${shard.firstRow}, the one before ends at ${row}`);
    }
    row += shard.rows;
  }
  if (row !== manifest.rows) throw invalid(file, `its shards have ${row} rows, the index ${manifest.rows}`);
  return manifest;
}

/** @throws TrawlError INDEX_FILE_MISSING, INDEX_MANIFEST_INVALID, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED. */
export function readShardManifest(folder: string): ShardManifest {
  const file = join(folder, SHARD_MANIFEST_FILE);
  const json = readJson(file, () => {
    throw new TrawlError('INDEX_FILE_MISSING', `${file}: is missing. Restore it or build the index again.`);
  });
  checkHead(file, json, 'trawl-shard', SHARD_MANIFEST_VERSION);
  return check(file, ShardManifest, checkChecksum(file, json));
}

function readJson(file: string, onMissing: () => never): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) onMissing();
    throw new TrawlError('INDEX_MANIFEST_INVALID', `${file}: cannot be read (${(error as Error).message}).`, {
      cause: error,
    });
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TrawlError('INDEX_MANIFEST_INVALID', `${file}: is not valid JSON (${(cause as Error).message}).`, {
      cause,
    });
  }
}

function checkHead(file: string, json: unknown, format: string, version: number): void {
  const head = (typeof json === 'object' && json !== null ? json : {}) as { format?: unknown; version?: unknown };
  if (head.format !== format) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${file}: has "format": ${JSON.stringify(head.format) ?? 'nothing'} where "${format}" was expected.`,
    );
  }
  if (head.version !== version) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${file}: has version ${JSON.stringify(head.version) ?? 'none'}; this program reads version ${version}. ` +
        'Use the program that wrote it, or build the index again.',
      { details: { found: head.version, supported: version } },
    );
  }
}

function check<Schema extends Type.TSchema>(file: string, schema: Schema, json: unknown): Type.Static<Schema> {
  if (Check(schema, json)) return json as Type.Static<Schema>;
  const [, [first]] = Errors(schema, json);
  throw invalid(file, first === undefined ? 'unknown reason' : `${first.instancePath || 'the whole'} ${first.message}`);
}

function invalid(file: string, reason: string): TrawlError {
  return new TrawlError('INDEX_MANIFEST_INVALID', `${file}: ${reason}. Restore it or build the index again.`);
}
