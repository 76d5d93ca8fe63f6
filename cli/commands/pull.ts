import { join, resolve } from 'node:path';
import { type DownloadedRepository, downloadRepository } from '../../hub/download-repository.ts';
import { type DownloadPlan, freeBytes, planDownload } from '../../hub/plan-download.ts';
import { PUBLISHED, type Published } from '../../hub/published.ts';
import { asTrawlError, TrawlError } from '../../src/errors.ts';
import { defineCommand, EXIT } from '../command.ts';
import { formatBytes, formatCount } from '../format.ts';
import { modelProgress } from '../model-progress.ts';
import { nextCommands } from '../pull-next.ts';
import { type PullPart, type PullSubject, pullSubject } from '../pull-subject.ts';

export const pullCommand = defineCommand({
  name: 'pull',
  summary: 'fetch published corpora and indexes from the Hugging Face hub',
  description:
    'Without a name it lists the corpora and indexes it knows. A name fetches the files of one, and owner/name (with or ' +
    'without @revision) those of any other data set. Each file is checked against its size and checksum, and the free disk ' +
    'against all of them before anything comes. What was stopped is continued by the same command; SIGTERM ends it with ' +
    'exit code 75, Ctrl-C with 130. Nothing is unpacked, joined or copied: indexes and corpora are used where they lie, and ' +
    'the last lines say with which command.\n\n' +
    "HF_TOKEN, HF_ENDPOINT and the other variables mean what they mean to Python's huggingface_hub, as for `trawl model add`.\n\n" +
    'With --json: {"name", "repositories": [{"repository", "type", "commit", "folder", "files": [{"path", "bytes"}], ' +
    '"bytes", "transferredBytes"}], "next", "remarks"}; with --dry-run "missingBytes" for "transferredBytes", and "missingBytes", ' +
    '"freeBytes" and "fits" of the whole in place of "next"; without a name the table as an array.',
  positionals: {
    usage: '[name]',
    help: { name: 'A name of the table, or owner/name[@revision] of a repository on the hub.' },
    min: 0,
    max: 1,
  },
  options: {
    out: {
      kind: 'string',
      value: 'DIR',
      default: 'downloads',
      help: 'The folder for repositories; the files of owner/name come into DIR/owner/name, so that what two names share comes once.',
    },
    list: { kind: 'flag', help: 'List the table, as without a name.' },
    'dry-run': {
      kind: 'flag',
      help: 'Ask the hub, print files, sizes and free space, and fetch nothing; exit code 3 when it does not fit.',
    },
    include: {
      kind: 'list',
      value: 'PATTERN',
      help: 'Of owner/name: only files whose path matches; * stands for any characters, slashes too, ? for one.',
    },
    exclude: { kind: 'list', value: 'PATTERN', help: 'Of owner/name: not these files.' },
    type: {
      kind: 'choice',
      choices: ['dataset', 'model'],
      default: 'dataset',
      help: 'Kind of the repository owner/name. To use a model, `trawl model add` fetches and converts it.',
    },
    concurrency: { kind: 'integer', value: 'N', default: 4, min: 1, max: 32, help: 'Files at once.' },
  },
  examples: [
    'trawl pull',
    'trawl pull wiki18-e5 --dry-run',
    'trawl pull wiki18-e5 --out /data/hub',
    "trawl pull BeIR/nfcorpus --include '*.jsonl.gz'",
  ],
  resumable: true,
  async run({ options, positionals, signal, out, note }) {
    const { include, exclude, type, json } = options;
    if (options.list || positionals.length === 0) {
      if (positionals.length > 0) throw new TrawlError('USAGE', '--list takes no name.');
      out(json ? JSON.stringify(PUBLISHED) : table());
      return EXIT.ok;
    }
    const say = json ? (): void => undefined : note;
    const subject = pullSubject(positionals[0]!, { type, include, exclude });
    const root = resolve(options.out);
    const into = (name: string): string => join(root, name);
    const plans: DownloadPlan[] = [];
    const remarks: string[] = [];
    for (const part of subject.parts) {
      const plan = await planDownload({ ...part, into: into(part.repository.name), signal, onNotice: say });
      plans.push(plan);
      remarks.push(...lengthRemarks(part, plan));
    }
    for (const remark of remarks) say(remark);
    const free = await freeBytes(root);
    const missing = plans.reduce((sum, { missingBytes }) => sum + missingBytes, 0);
    if (options['dry-run']) {
      const fits = missing <= free;
      if (json) {
        const repositories = subject.parts.map((part, i) => ({
          ...facts(part, plans[i]!),
          missingBytes: plans[i]!.missingBytes,
        }));
        out(
          JSON.stringify({ name: subject.name, repositories, missingBytes: missing, freeBytes: free, fits, remarks }),
        );
      } else out(dryRunText(subject, plans, { missing, free }));
      return fits ? EXIT.ok : EXIT.problems;
    }
    if (missing > free) {
      throw new TrawlError(
        'DISK_FULL',
        `${subject.name} needs ${formatBytes(missing)} more in ${root}, and ${formatBytes(free)} are free. Free space, or ` +
          'name a folder on another disk with --out.',
        { details: { needed: missing, free } },
      );
    }
    const done: DownloadedRepository[] = [];
    for (const [i, part] of subject.parts.entries()) {
      const progress = modelProgress({ silent: options.quiet || json });
      say(`${part.repository.name}@${plans[i]!.commit.slice(0, 12)} → ${plans[i]!.folder}`);
      try {
        done.push(
          await downloadRepository({
            ...part,
            // What was planned, should the branch move meanwhile.
            revision: plans[i]!.commit,
            into: plans[i]!.folder,
            concurrency: options.concurrency,
            signal,
            onProgress: progress.download,
            onNotice: progress.note,
          }),
        );
      } catch (error) {
        throw stoppedIfCancelled(error);
      } finally {
        progress.stop();
      }
    }
    const next = subject.published === undefined ? [] : nextCommands(subject.published, into);
    if (json) {
      const repositories = subject.parts.map((part, i) => ({
        ...facts(part, plans[i]!),
        transferredBytes: done[i]!.transferredBytes,
      }));
      out(JSON.stringify({ name: subject.name, repositories, next, remarks }));
      return EXIT.ok;
    }
    for (const { folder, files } of done) for (const { path } of files) out(join(folder, path));
    const came = done.reduce((sum, { transferredBytes }) => sum + transferredBytes, 0);
    note(`${formatBytes(came)} came; every file has the hub's size and checksum.`);
    if (next.length > 0) note(`Next:\n${next.map((command) => `  ${command}`).join('\n')}`);
    return EXIT.ok;
  },
});

function facts({ repository }: PullPart, { commit, folder, files, bytes }: DownloadPlan) {
  return {
    repository: repository.name,
    type: repository.type,
    commit,
    folder,
    files: files.map((file) => ({ path: file.path, bytes: file.bytes })),
    bytes,
  };
}

/** Vectors belong to the rows of a certain file; another length is another file. */
function lengthRemarks({ repository, knownBytes }: PullPart, { files }: DownloadPlan): string[] {
  return files.flatMap(({ path, bytes }) => {
    const known = knownBytes.get(path);
    if (known === undefined || known === bytes) return [];
    return [
      `${repository.name}: ${path} has ${formatCount(bytes)} bytes on the hub and had ${formatCount(known)} when it was ` +
        'last looked at: it was replaced, and vectors or row numbers made of the old one do not belong to it.',
    ];
  });
}

function stoppedIfCancelled(error: unknown): unknown {
  if (asTrawlError(error).code !== 'CANCELLED') return error;
  return new TrawlError('CANCELLED', 'Stopped. What has arrived is kept; the same command goes on there.', {
    details: { resumable: true },
    cause: error,
  });
}

function table(): string {
  const width = Math.max(...PUBLISHED.map(({ name }) => name.length));
  const lines = PUBLISHED.flatMap((row) => [
    `${row.name.padEnd(width)}  ${knownSize(row)}  ${row.summary}`,
    ...row.parts.map(
      ({ repository, files }) => `${' '.repeat(width + 12)}${repository}: ${files.map(({ path }) => path).join(', ')}`,
    ),
  ]);
  return [...lines, 'owner/name: any other data set of the hub. --dry-run asks the hub for true sizes.'].join('\n');
}

function knownSize({ parts }: Published): string {
  const sizes = parts.flatMap(({ files }) => files.map(({ bytes, roundedBytes }) => bytes ?? roundedBytes));
  const known = sizes.every((bytes) => bytes !== undefined)
    ? formatBytes(sizes.reduce((sum, bytes) => sum + bytes, 0))
    : '?';
  return known.padStart(8);
}

function dryRunText(
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
  const rest = `${formatBytes(missing)} to fetch, ${formatBytes(free)} free: ${missing <= free ? 'it fits' : 'it does not fit'}`;
  return [...lines, rest].join('\n');
}
