import { readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

import { TrawlError } from '../src/base/errors.ts';
import { headOf } from '../src/base/files/foreign-file.ts';
import { type FileFormat, formatNamed, formatOfName, KNOWN_EXTENSIONS, refuseUnknownFormat } from './corpus-formats.ts';
import { notFound, reasonOf } from './read-errors.ts';

export interface CorpusFile {
  readonly path: string;
  readonly format: FileFormat;
  /** Size on disk in bytes; 0 for a pipe. */
  readonly sizeBytes: number;
}

/** The format of a file name; undefined if unknown. */
type FormatOfPath = (path: string) => FileFormat | undefined;

/**
 * Lists the files to read: the paths in the given order, and for a directory every file below it with a known extension, in
 * the byte order of the relative paths (with `/`). Names that start with a dot are skipped. Synchronous, so that a wrong
 * path is reported before anything expensive starts.
 *
 * @throws TrawlError USAGE, CORPUS_NOT_FOUND, CORPUS_EMPTY or CORPUS_FORMAT_UNKNOWN.
 */
export function listCorpusFiles(
  paths: readonly string[],
  name?: string,
  formatOfPath: FormatOfPath = formatOfName,
): CorpusFile[] {
  const format = name === undefined ? undefined : formatNamed(name);
  if (paths.length === 0) {
    throw new TrawlError('USAGE', 'No corpus given: expected at least one file or directory.');
  }
  return paths.flatMap((path) => {
    const stats = existing(path, (found) => statSync(found));
    if (stats.isDirectory()) return listDirectory(path, format, formatOfPath);
    const found = format ?? formatOfPath(path);
    if (found === undefined) refuseUnknownFormat(path, stats.isFile() ? existing(path, headOf) : new Uint8Array());
    return [corpusFile(path, stats, found)];
  });
}

function listDirectory(directory: string, format: FileFormat | undefined, formatOfPath: FormatOfPath): CorpusFile[] {
  const found = Array.from(corpusPathsBelow(directory, [], formatOfPath), (path) => {
    return { path, key: Buffer.from(relative(directory, path).split(sep).join('/')) };
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
  return found.map(({ path }) =>
    corpusFile(
      path,
      existing(path, (found) => statSync(found)),
      format ?? formatOfPath(path)!,
    ),
  );
}

/** Does not follow links back to `ancestors`, which are real paths. */
function* corpusPathsBelow(
  directory: string,
  ancestors: readonly string[],
  formatOfPath: FormatOfPath,
): Generator<string, void> {
  const realPath = realpathSync(directory);
  if (ancestors.includes(realPath)) return;
  for (const entry of existing(directory, (found) => readdirSync(found, { withFileTypes: true }))) {
    if (entry.name.startsWith('.')) continue;
    const path = join(directory, entry.name);
    const known = formatOfPath(entry.name) !== undefined;
    // Download caches often contain links to the actual files.
    if (entry.isSymbolicLink() ? isDirectoryLink(path, known) : entry.isDirectory()) {
      yield* corpusPathsBelow(path, [...ancestors, realPath], formatOfPath);
    } else if (known) yield path;
  }
}

/** A broken link is an error only if it is named like a corpus file. */
function isDirectoryLink(path: string, known: boolean): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined && known) throw notFound(path, 'it is a link to a file that does not exist');
  return stats?.isDirectory() ?? false;
}

/** What `read` finds at a path. @throws TrawlError CORPUS_NOT_FOUND if that fails. */
function existing<Found>(path: string, read: (path: string) => Found): Found {
  try {
    return read(path);
  } catch (error) {
    throw notFound(path, reasonOf(error), error);
  }
}

function corpusFile(path: string, stats: Stats, format: FileFormat): CorpusFile {
  if (format.format.newline === null && !stats.isFile()) {
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} is not a regular file, and ${format.name} cannot be read from a pipe. Write it to a file first.`,
      { details: { path } },
    );
  }
  return { path, format, sizeBytes: stats.size };
}
