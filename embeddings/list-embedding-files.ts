import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import type { EmbeddingFile } from './embedding-set.ts';

/** Files of a folder that are taken for vectors where it has no pieces. */
const KNOWN_ENDINGS = /\.(npy|index|faiss|bin|memmap|pkl|pickle)$/;
const PIECE = /^part[_-]/;

/**
 * The files in the order of their rows. A folder gives its pieces (`part_aa`, `part_ab`, …), else its files of a known
 * ending; a name with `*` or `?` the files that fit it. Those are ordered by name with numbers by value, so that `emb_2`
 * comes before `emb_10`; files that are named one by one stay in the order given.
 *
 * @throws TrawlError VECTORS_NOT_FOUND.
 */
export function listEmbeddingFiles(paths: readonly string[]): EmbeddingFile[] {
  const files = paths.flatMap(expand).map(fileAt);
  if (files.length === 0) throw notFound('no file of vectors was named');
  const twice = files.find(({ path }, i) => files.findIndex((other) => other.path === path) !== i);
  if (twice !== undefined) throw notFound(`${twice.path} is named twice`);
  return files;
}

function expand(path: string): string[] {
  const full = resolve(path);
  if (existsSync(full)) return statSync(full).isDirectory() ? filesOfFolder(full) : [full];
  const pattern = basename(full);
  if (!/[*?]/.test(pattern)) throw notFound(`${full} is not there`);
  const folder = dirname(full);
  const fits = new RegExp(
    `^${[...pattern].map((c) => (c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[\\^$+.()|[\]{}]/, '\\$&'))).join('')}$`,
  );
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => fits.test(name)) : [];
  if (names.length === 0) throw notFound(`no file fits ${full}`);
  return inOrder(folder, names);
}

function filesOfFolder(folder: string): string[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
  const pieces = names.filter((name) => PIECE.test(name));
  const found = pieces.length > 0 ? pieces : names.filter((name) => KNOWN_ENDINGS.test(name));
  if (found.length === 0) {
    throw notFound(`${folder} holds no part_* and no file of vectors (.index, .faiss, .bin, .npy, .memmap, .pkl)`);
  }
  return inOrder(folder, found);
}

function inOrder(folder: string, names: readonly string[]): string[] {
  const byNumber = new Intl.Collator('en', { numeric: true });
  return names.toSorted((a, b) => byNumber.compare(a, b) || (a < b ? -1 : 1)).map((name) => join(folder, name));
}

function fileAt(path: string): EmbeddingFile {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw notFound(`${path} cannot be read (${(cause as Error).message})`);
  }
  if (!stats.isFile())
    throw notFound(`${path} is no regular file; vectors are read in place, so a pipe cannot be used`);
  return { path, bytes: stats.size, modifiedMs: stats.mtimeMs };
}

function notFound(reason: string): TrawlError {
  return new TrawlError('VECTORS_NOT_FOUND', `Vectors: ${reason}. Name the files in the order of their rows.`);
}
