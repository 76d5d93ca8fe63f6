import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

import { isNodeError, TrawlError } from '../src/base/errors.ts';
import { type CorpusFormat, formatOf, formatOfName, KNOWN_EXTENSIONS } from './corpus-format.ts';

export interface CorpusFile {
  readonly path: string;
  readonly format: CorpusFormat;
  /** Size on disk in bytes; 0 for a pipe. */
  readonly sizeBytes: number;
}

/** The format of a file name; undefined if unknown. */
export type FormatOfPath = (path: string) => CorpusFormat | undefined;

/**
 * Lists the files to read: the paths in the given order, and for a directory every file below it with a known extension, in
 * the byte order of the relative paths (with `/`). Names that start with a dot are skipped. Synchronous, so that a wrong
 * path is reported before anything expensive starts.
 *
 * @throws TrawlError USAGE, CORPUS_NOT_FOUND, CORPUS_EMPTY or CORPUS_FORMAT_UNKNOWN.
 */
export function listCorpusFiles(
  paths: readonly string[],
  format?: CorpusFormat,
  formatOfPath: FormatOfPath = formatOfName,
): CorpusFile[] {
  if (paths.length === 0) {
    throw new TrawlError('USAGE', 'No corpus given: expected at least one file or directory.');
  }
  return paths.flatMap((path) => {
    const stats = statOf(path);
    return stats.isDirectory()
      ? listDirectory(path, format, formatOfPath)
      : [corpusFile(path, stats, format ?? formatOfPath(path) ?? formatOf(path, format))];
  });
}

function listDirectory(directory: string, format: CorpusFormat | undefined, formatOfPath: FormatOfPath): CorpusFile[] {
  const found: { key: Buffer; path: string }[] = [];
  walk(directory, [], formatOfPath, (path) => {
    found.push({ key: Buffer.from(relative(directory, path).split(sep).join('/')), path });
  });
  if (found.length === 0) {
    throw new TrawlError(
      'CORPUS_EMPTY',
      `The directory ${directory} contains no corpus file: expected names that end in ${KNOWN_EXTENSIONS.join(', ')}. ` +
        'List files with other extensions one by one, and set --format.',
      { details: { path: directory } },
    );
  }
  found.sort((a, b) => Buffer.compare(a.key, b.key));
  return found.map(({ path }) => corpusFile(path, statOf(path), format ?? formatOfPath(path)!));
}

/** Visits the corpus files below a directory. Links back to `ancestors`, which are real paths, are not followed. */
function walk(
  directory: string,
  ancestors: readonly string[],
  formatOfPath: FormatOfPath,
  visit: (path: string) => void,
): void {
  const realPath = realpathSync(directory);
  if (ancestors.includes(realPath)) return;
  for (const entry of entriesOf(directory)) {
    if (entry.name.startsWith('.')) continue;
    const path = join(directory, entry.name);
    const known = formatOfPath(entry.name) !== undefined;
    // Download caches often contain links to the actual files.
    if (entry.isSymbolicLink() ? isDirectoryLink(path, known) : entry.isDirectory()) {
      walk(path, [...ancestors, realPath], formatOfPath, visit);
    } else if (known) {
      visit(path);
    }
  }
}

/** A broken link is an error only if it is named like a corpus file. */
function isDirectoryLink(path: string, known: boolean): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined && known) throw notFound(path, 'it is a link to a file that does not exist');
  return stats?.isDirectory() ?? false;
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    throw notFound(directory, reasonOf(error), error);
  }
}

function statOf(path: string): Stats {
  try {
    return statSync(path);
  } catch (error) {
    throw notFound(path, reasonOf(error), error);
  }
}

function corpusFile(path: string, stats: Stats, format: CorpusFormat): CorpusFile {
  if (format === 'parquet' && !stats.isFile()) {
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} is not a regular file. Parquet cannot be read from a pipe, because its index is at the end. Write it to a file first.`,
      { details: { path } },
    );
  }
  return { path, format, sizeBytes: stats.size };
}

/** CORPUS_NOT_FOUND for a path that cannot be opened or read. */
export function notFound(path: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'CORPUS_NOT_FOUND',
    `The corpus ${path} cannot be read: ${reason}. Check the path and its permissions.`,
    { details: { path }, cause },
  );
}

export function reasonOf(error: unknown): string {
  if (!isNodeError(error)) return error instanceof Error ? error.message : String(error);
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return 'no such file or directory';
  if (error.code === 'EACCES' || error.code === 'EPERM') return 'permission denied';
  return error.message;
}
