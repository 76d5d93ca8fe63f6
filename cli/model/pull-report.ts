import { dirname, join, relative, sep } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import type { DownloadPlan } from '../../indexer/hub/download-repository.ts';
import { PUBLISHED, type Published } from '../../indexer/hub/published.ts';
import { formatBytes, formatCount, quoteForShell } from '../../src/base/format.ts';
import type { PullPart, PullSubject } from './pull-subject.ts';

/** The JSON fields of one repository. */
export function repositoryFacts({ repository }: PullPart, { commit, folder, files, bytes }: DownloadPlan) {
  return {
    repository: repository.name,
    type: repository.type,
    commit,
    folder,
    files: files.map((file) => ({ path: file.path, bytes: file.bytes })),
    bytes,
  };
}

/** Warnings about files whose length differs from the table: vectors belong to the rows of one version of a corpus. */
export function lengthRemarks({ repository, knownBytes }: PullPart, { files }: DownloadPlan): string[] {
  return files.flatMap(({ path, bytes }) => {
    const known = knownBytes.get(path);
    if (known === undefined || known === bytes) return [];
    return [
      `${repository.name}: ${path} has ${formatCount(bytes)} bytes on the hub, but had ${formatCount(known)} when this ` +
        'table was made. The file was replaced: vectors and row numbers of the old file do not match the new one.',
    ];
  });
}

export function publishedTable(): string {
  const width = Math.max(...PUBLISHED.map(({ name }) => name.length));
  const lines = PUBLISHED.flatMap((row) => [
    `${row.name.padEnd(width)}  ${knownSize(row)}  ${row.summary}`,
    ...row.parts.map(
      ({ repository, files }) => `${' '.repeat(width + 12)}${repository}: ${files.map(({ path }) => path).join(', ')}`,
    ),
  ]);
  return [...lines, 'Any other data set of the hub: owner/name. --dry-run shows the current sizes.'].join('\n');
}

function knownSize({ parts }: Published): string {
  const sizes = parts.flatMap(({ files }) => files.map(({ bytes, roundedBytes }) => bytes ?? roundedBytes));
  const known = sizes.every((bytes) => bytes !== undefined)
    ? formatBytes(sizes.reduce((sum, bytes) => sum + bytes, 0))
    : '?';
  return known.padStart(8);
}

export function dryRunReport(
  { parts }: PullSubject,
  plans: readonly DownloadPlan[],
  { missing, free }: { readonly missing: number; readonly free: number },
): string {
  const lines = parts.flatMap(({ repository }, i) => {
    const { folder, commit, files } = plans[i]!;
    return [
      `${repository.name}@${commit.slice(0, 12)} → ${folder}`,
      ...files.map(({ path, bytes }) => `  ${formatBytes(bytes).padStart(8)}  ${path}`),
    ];
  });
  const fits = missing <= free ? 'it fits' : 'it does not fit';
  return [...lines, `${formatBytes(missing)} to download, ${formatBytes(free)} free: ${fits}`].join('\n');
}

/** The commands that make an index from the pulled files, which stay in place. `folderOf` returns a repository's folder. */
export function nextCommands(published: Published, folderOf: (repository: string) => string): string[] {
  const paths = (holds: 'corpus' | 'vectors'): string[] =>
    published.parts
      .filter((part) => part.holds === holds)
      .flatMap(({ repository, files }) => files.map(({ path }) => join(folderOf(repository), path)));
  const shown = (all: readonly string[]): string => all.map((path) => quoteForShell(fromHere(path))).join(' ');
  const { name, index, zipHolds } = published;
  const model = index?.model ?? 'intfloat/e5-base-v2';
  const modelName = model.slice(model.indexOf('/') + 1);
  const out = `indexes/${name}`;
  let corpus = paths('corpus');
  const commands = [`trawl model add ${model}`];
  if (zipHolds !== undefined) {
    const folder = dirname(corpus[0]!);
    commands.push(`unzip ${shown(corpus)} -d ${shown([folder])}`);
    corpus = [join(folder, zipHolds)];
  }
  if (index === undefined) return [...commands, `trawl index ${shown(corpus)} --model ${modelName} --out ${out}`];
  const template =
    index.passageTemplate === DEFAULT_PASSAGE_TEMPLATE
      ? ''
      : ` --passage-template ${quoteForShell(index.passageTemplate)}`;
  return [
    ...commands,
    `trawl import ${shown(paths('vectors'))} --corpus ${shown(corpus)} --model ${modelName}${template} --out ${out}`,
  ];
}

/** The path, relative to the current folder if it is inside. */
function fromHere(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith(`..${sep}`) ? path : near;
}
