import { PUBLISHED, type Published } from '../../indexer/hub/published.ts';
import { parseRepositoryName, type Repository, type RepositoryFile } from '../../indexer/hub/repository.ts';
import { chosenFiles, namedFiles } from '../../indexer/hub/select-files.ts';
import { type TrawlError, usageError } from '../../src/base/errors.ts';
import { closestTo } from '../../src/base/options/closest.ts';

/** The files to pull from one repository. */
export interface PullPart {
  readonly repository: Repository;
  readonly revision: string | undefined;
  /** File lengths in the table, by path. */
  readonly knownBytes: ReadonlyMap<string, number>;
  select(files: readonly RepositoryFile[]): readonly RepositoryFile[];
}

export interface PullSubject {
  readonly name: string;
  readonly parts: readonly PullPart[];
  /** The row of the table; undefined for `owner/name`. */
  readonly published: Published | undefined;
}

export interface PullChoice {
  readonly type: Repository['type'];
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** Parses a name of the table or `owner/name[@revision]`. @throws TrawlError USAGE. */
export function pullSubject(text: string, choice: PullChoice): PullSubject {
  const at = text.indexOf('@');
  const [name, revision] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (revision === '') throw usageError(`${text}: expected a branch, tag or commit after the @.`);
  if (name.includes('/')) {
    const repository: Repository = { type: choice.type, name: parseRepositoryName(name) };
    const select = (files: readonly RepositoryFile[]) => chosenFiles(files, choice, name);
    return { name, parts: [{ repository, revision, knownBytes: new Map(), select }], published: undefined };
  }
  const published = PUBLISHED.find((row) => row.name === name);
  if (published === undefined) throw unknownName(name);
  if (revision !== undefined || choice.type !== 'dataset' || choice.include.length + choice.exclude.length > 0) {
    throw usageError(
      `${name} names fixed files; a revision, --include, --exclude and --type need owner/name. \`trawl pull\` lists the ` +
        'repositories.',
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
  const problem = near === undefined ? `expected one of ${names.join(', ')}` : `did you mean ${near}?`;
  return usageError(
    `${JSON.stringify(name)} is not in the table of \`trawl pull\`; ${problem}${near === undefined ? '.' : ''} Other data ` +
      'sets of the hub are written owner/name.',
  );
}
