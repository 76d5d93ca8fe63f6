import type { RepositoryFile } from './repository.ts';

/**
 * The files that match one of the patterns and none of the excluded ones: `*` for any characters, slashes too, `?` for
 * one, as the patterns of Python's huggingface_hub. A pattern that ends with a slash means all that is below.
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
