import { TrawlError } from '../src/errors.ts';
import { matchingFiles } from './file-patterns.ts';
import type { RepositoryFile } from './repository.ts';

/** Names that a message has room for. */
const MOST_NAMES = 8;

/** The files with these paths, in this order. @throws TrawlError HUB_NOT_FOUND naming those that are not there. */
export function namedFiles(
  files: readonly RepositoryFile[],
  paths: readonly string[],
  repository: string,
): RepositoryFile[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const missing = paths.filter((path) => !byPath.has(path));
  if (missing.length > 0) throw noFile(files, `no file ${missing.join(', ')} (any more)`, repository);
  return paths.map((path) => byPath.get(path)!);
}

/**
 * The files that match one of the patterns, all where there is none, and none of the excluded ones. @throws TrawlError
 * HUB_NOT_FOUND where nothing is left.
 */
export function chosenFiles(
  files: readonly RepositoryFile[],
  { include, exclude }: { readonly include: readonly string[]; readonly exclude: readonly string[] },
  repository: string,
): RepositoryFile[] {
  const chosen = matchingFiles(files, include.length > 0 ? include : ['*'], exclude);
  if (chosen.length > 0) return chosen;
  const given = [...include, ...exclude.map((pattern) => `not ${pattern}`)].join(', ');
  throw noFile(files, given === '' ? 'no file' : `no file that matches ${given}`, repository);
}

function noFile(files: readonly RepositoryFile[], what: string, repository: string): TrawlError {
  const names = files.slice(0, MOST_NAMES).map(({ path }) => path);
  const rest = files.length - names.length;
  const there =
    files.length === 0 ? 'It is empty.' : `It has ${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}.`;
  return new TrawlError('HUB_NOT_FOUND', `${repository} has ${what}. ${there}`);
}
