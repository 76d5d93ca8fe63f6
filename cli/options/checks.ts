import type { NamedFile } from '../../evaluation/bulk-search/check-files-apart.ts';
import { usageError } from '../../src/base/errors.ts';

/** @throws TrawlError USAGE with `why` if one of the options is given, such as `without --rerank MODEL` or `: a reason`. */
export function refuseOptions(given: ReadonlySet<string>, names: readonly string[], why: string): void {
  const useless = names.find((name) => given.has(name));
  if (useless !== undefined) throw usageError(`--${useless} has no effect${why.startsWith(':') ? '' : ' '}${why}.`);
}

/** The value of an option that must be given. @throws TrawlError USAGE with `what` it is. */
export function requiredOption(name: string, value: string | undefined, what: string): string {
  if (value !== undefined && value !== '') return value;
  throw usageError(`--${name} is missing: ${what}.`);
}

/** The first argument of a command with actions. @throws TrawlError USAGE for an unknown action. */
export function actionOf<Name extends string>(
  command: string,
  actions: readonly Name[],
  given: string | undefined,
): Name {
  const action = actions.find((known) => known === given);
  if (action !== undefined) return action;
  throw usageError(
    `Unknown action trawl ${command} ${given}; expected ${actions.length === 1 ? '' : 'one of '}${actions.join(', ')}.`,
  );
}

/** The files of options that are given. */
export function namedFiles<Name extends string>(
  options: Readonly<Record<Name, string | readonly string[] | undefined>>,
  names: readonly Name[],
): NamedFile[] {
  return names.flatMap((name) => [options[name] ?? []].flat().map((path) => ({ name: `--${name}`, path })));
}
