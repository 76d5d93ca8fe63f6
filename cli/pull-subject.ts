import { PUBLISHED, type Published } from '../hub/published.ts';
import { parseRepositoryName, type Repository, type RepositoryFile } from '../hub/repository.ts';
import { chosenFiles, namedFiles } from '../hub/select-files.ts';
import { TrawlError } from '../src/errors.ts';
import { closestTo } from '../src/options/closest.ts';

/** Files of one repository that `trawl pull` is to bring. */
export interface PullPart {
  readonly repository: Repository;
  readonly revision: string | undefined;
  /** The lengths that the table knows, by path. */
  readonly knownBytes: ReadonlyMap<string, number>;
  select(files: readonly RepositoryFile[]): readonly RepositoryFile[];
}

export interface PullSubject {
  readonly name: string;
  readonly parts: readonly PullPart[];
  /** The row of the table, where it is one. */
  readonly published: Published | undefined;
}

export interface PullChoice {
  readonly type: Repository['type'];
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** A name of the table, or `owner/name` with or without `@revision`. @throws TrawlError USAGE. */
export function pullSubject(text: string, choice: PullChoice): PullSubject {
  const at = text.indexOf('@');
  const [name, revision] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (revision === '') throw new TrawlError('USAGE', `${text}: behind the @ a branch, tag or commit is missing.`);
  if (name.includes('/')) {
    const repository: Repository = { type: choice.type, name: parseRepositoryName(name) };
    const select = (files: readonly RepositoryFile[]) => chosenFiles(files, choice, name);
    return { name, parts: [{ repository, revision, knownBytes: new Map(), select }], published: undefined };
  }
  const published = PUBLISHED.find((row) => row.name === name);
  if (published === undefined) throw unknownName(name);
  if (revision !== undefined || choice.type !== 'dataset' || choice.include.length + choice.exclude.length > 0) {
    throw new TrawlError(
      'USAGE',
      `${name} stands for certain files of certain repositories; a revision, --include, --exclude and --type belong to ` +
        'owner/name. `trawl pull` lists both.',
    );
  }
  return {
    name,
    published,
    parts: published.parts.map(({ repository, files }) => ({
      repository: { type: 'dataset', name: repository },
      revision: undefined,
      knownBytes: new Map(files.flatMap(({ path, bytes }) => (bytes === undefined ? [] : [[path, bytes] as const]))),
      select: (all) =>
        namedFiles(
          all,
          files.map(({ path }) => path),
          repository,
        ),
    })),
  };
}

function unknownName(name: string): TrawlError {
  const names = PUBLISHED.map((row) => row.name);
  const near = closestTo(name, names);
  const problem = near === undefined ? `there are ${names.join(', ')}` : `did you mean ${near}?`;
  return new TrawlError(
    'USAGE',
    `Nothing published is known as ${JSON.stringify(name)}; ${problem}${near === undefined ? '.' : ''} Any other data set ` +
      'of the hub is owner/name.',
  );
}
