import { TrawlError } from '../../src/base/errors.ts';
import type { RepositoryFile } from './repository.ts';

const MAX_NAMES = 8;

/** The files with these paths, in this order. @throws TrawlError HUB_NOT_FOUND with the missing paths. */
export function namedFiles(
  files: readonly RepositoryFile[],
  paths: readonly string[],
  repository: string,
): RepositoryFile[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const missing = paths.filter((path) => !byPath.has(path));
  if (missing.length > 0) throw noFile(files, `no file ${missing.join(', ')}`, repository);
  return paths.map((path) => byPath.get(path)!);
}

/** The files that match `include` (empty: all) and no `exclude` pattern. Throws HUB_NOT_FOUND if no file is left. */
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
  const names = files.slice(0, MAX_NAMES).map(({ path }) => path);
  const rest = files.length - names.length;
  const there =
    files.length === 0 ? 'It has no files.' : `It has ${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}.`;
  return new TrawlError('HUB_NOT_FOUND', `${repository} has ${what}. ${there}`);
}

/**
 * The files that match one of the patterns and no excluded one. As in Python's huggingface_hub, `*` stands for any characters
 * including slashes and `?` for one; a pattern that ends with a slash matches everything below it.
 * @internal Exported for tests.
 */
export function matchingFiles(
  files: readonly RepositoryFile[],
  include: readonly string[],
  exclude: readonly string[] = [],
): RepositoryFile[] {
  const wanted = include.map(expressionOf);
  const unwanted = exclude.map(expressionOf);
  return files.filter(
    ({ path }) => wanted.some((pattern) => pattern.test(path)) && !unwanted.some((pattern) => pattern.test(path)),
  );
}

function expressionOf(pattern: string): RegExp {
  const whole = pattern.endsWith('/') ? `${pattern}*` : pattern;
  const source = whole
    .replaceAll(/[\\^$.|+()[\]{}]/g, '\\$&')
    .replaceAll(/\*+/g, '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'su');
}
