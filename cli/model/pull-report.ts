import type { DownloadPlan } from '../../indexer/hub/plan-download.ts';
import { PUBLISHED, type Published } from '../../indexer/hub/published.ts';
import { formatBytes, formatCount } from '../../src/base/format.ts';
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
