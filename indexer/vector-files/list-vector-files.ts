import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { VectorFile } from './vector-file-set.ts';

const PIECE = /^part[_-]/;

/**
 * Lists vector files in the order of their rows. A folder stands for its pieces (`part_aa`, `part_ab`, …) or, if it has none,
 * for its files with a known suffix; a name with `*` or `?` for the files that match. Those are sorted by name, numbers by
 * value (`emb_2` before `emb_10`). Explicitly named files keep their order.
 *
 * @param endings of the names of files in a folder without pieces.
 * @throws TrawlError VECTORS_NOT_FOUND.
 */
export function listVectorFiles(paths: readonly string[], endings: readonly string[]): VectorFile[] {
  const files = paths.flatMap((path) => expand(path, endings)).map(fileAt);
  if (files.length === 0) throw notFound('no file was named');
  const twice = files.find(({ path }, i) => files.findIndex((other) => other.path === path) !== i);
  if (twice !== undefined) throw notFound(`${twice.path} is named twice`);
  return files;
}

function expand(path: string, endings: readonly string[]): string[] {
  const full = resolve(path);
  if (existsSync(full)) return statSync(full).isDirectory() ? filesOfFolder(full, endings) : [full];
  const pattern = basename(full);
  if (!/[*?]/.test(pattern)) throw notFound(`${full} does not exist`);
  const folder = dirname(full);
  const expression = new RegExp(
    `^${[...pattern].map((c) => (c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[\\^$+.()|[\]{}]/, '\\$&'))).join('')}$`,
  );
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => expression.test(name)) : [];
  if (names.length === 0) throw notFound(`no file matches ${full}`);
  return inOrder(folder, names);
}

function filesOfFolder(folder: string, endings: readonly string[]): string[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
  const pieces = names.filter((name) => PIECE.test(name));
  const found = pieces.length > 0 ? pieces : names.filter((name) => endings.some((ending) => name.endsWith(ending)));
  if (found.length === 0) {
    throw notFound(`${folder} has no vector files (part_*, ${endings.join(', ')})`);
  }
  return inOrder(folder, found);
}

function inOrder(folder: string, names: readonly string[]): string[] {
  const byNumber = new Intl.Collator('en', { numeric: true });
  return names.toSorted((a, b) => byNumber.compare(a, b) || (a < b ? -1 : 1)).map((name) => join(folder, name));
}

function fileAt(path: string): VectorFile {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw notFound(`cannot read ${path}: ${(cause as Error).message}`);
  }
  if (!stats.isFile())
    throw notFound(`${path} is not a regular file; vectors are read in place, so a pipe cannot be used`);
  return { path, bytes: stats.size, modifiedMs: stats.mtimeMs };
}

function notFound(reason: string): TrawlError {
  return new TrawlError('VECTORS_NOT_FOUND', `Vector files: ${reason}. Name the files in the order of their rows.`);
}
