import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { sha256OfFile } from '../src/base/system/file-checksum.ts';
import { LEXICAL_FIELDS, type LexicalField } from '../src/engine/lexical/lexical-settings.ts';
import type { FileRecord } from '../src/index/manifest/schemas.ts';

/** Names of the files that Trawl writes in a shard. */
export const VECTORS_FILE = 'vectors.faiss';
export const CODES_FILE = 'codes.i8';
export const PREFILTER_FILE = 'prefilter.i8';
/** A field in names of files: itself, or a hash of a name that a client chose. */
export function fieldInFileName(field: LexicalField): string {
  if ((LEXICAL_FIELDS as readonly string[]).includes(field)) return field;
  return `field-${createHash('sha256').update(field).digest('hex').slice(0, 32)}`;
}
/** The names that an inverted index of a field can have. One that is to replace another is written under the other name. */
export function lexicalFiles(field: LexicalField): readonly [string, string] {
  const name = fieldInFileName(field);
  return [`${name}.bm25`, `${name}.2.bm25`];
}
/** Matches the names of inverted indexes of any field. */
export const LEXICAL_FILE = /^(?:contents|title|text|field-[0-9a-f]{32})(?:\.2)?\.bm25$/;
/** The file of a column, by a number that is free in its shard. */
export function columnFile(number: number): string {
  return `column-${number}.bin`;
}
/** Matches the names of column files, also of temporary ones that a killed process left. */
export const COLUMN_FILE = /^column-\d+\.bin(?:\.tmp)?$/;
export const PASSAGES_FILE = 'passages.sqlite';

/** The record of a shard's file for its manifest: size and checksum. */
export async function fileRecord(path: string, signal?: AbortSignal): Promise<FileRecord> {
  return { path: basename(path), bytes: (await stat(path)).size, sha256: await sha256OfFile(path, signal) };
}

export function shardFolderName(index: number): string {
  return `shard-${String(index).padStart(5, '0')}`;
}

export function isShardFolder(name: string): boolean {
  return name.startsWith('shard-');
}
