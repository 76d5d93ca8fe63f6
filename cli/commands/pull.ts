import { join, resolve } from 'node:path';
import {
  type DownloadedRepository,
  type DownloadPlan,
  downloadRepository,
  planDownload,
} from '../../indexer/hub/download-repository.ts';
import { PUBLISHED } from '../../indexer/hub/published.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { formatBytes } from '../../src/base/format.ts';
import { freeBytes } from '../../src/base/system/free-bytes.ts';
import { dryRunReport, lengthRemarks, nextCommands, publishedTable, repositoryFacts } from '../model/pull-report.ts';
import { type PullSubject, pullSubject } from '../model/pull-subject.ts';
import * as option from '../options/option.ts';
import { modelProgress } from '../output/progress/model-progress.ts';
import { type CommandContext, defineCommand, EXIT, resumable } from '../program/command.ts';

const options = {
  out: option.text(
    { value: 'DIR', default: 'downloads' },
    'Folder for all repositories. The files of owner/name go to DIR/owner/name, so that files that two names share are downloaded once.',
  ),
  list: option.flag('List the table, as without a name.'),
  'dry-run': option.flag(
    'Download nothing; print files, sizes (from the hub) and free space. Exit code 3 if the files do not fit.',
  ),
  include: option.list(
    'PATTERN',
    'With owner/name: download only files whose path matches; * stands for any characters including slashes, ? for one.',
  ),
  exclude: option.list('PATTERN', 'With owner/name: skip files whose path matches.'),
  type: option.choice(
    { choices: ['dataset', 'model'], default: 'dataset' },
    'Type of the repository owner/name. To use a model as an encoder, run `trawl model add` instead.',
  ),
  concurrency: option.integer({ default: 4, min: 1, max: 32 }, 'Files downloaded at once.'),
} as const;

type Context = CommandContext<typeof options>;

export const pullCommand = defineCommand({
  name: 'pull',
  summary: 'download published corpora and indexes from the Hugging Face hub',
  description:
    'With a name of the table, downloads the files of a published corpus or index; with owner/name[@revision], the files of ' +
    'any other data set. Without a name, lists the table.\n\n' +
    'The command checks the free disk space before the download, and the size and checksum of every file after it. The same ' +
    'command resumes a stopped download; SIGTERM stops it with exit code 75, Ctrl-C with 130. Corpora and indexes need not be ' +
    'unpacked, joined or copied; the last lines of the output are the commands that use them.\n\n' +
    "HF_TOKEN, HF_ENDPOINT and the other variables work as for Python's huggingface_hub (see `trawl model`).\n\n" +
    'With --json: {"name", "repositories": [{"repository", "type", "commit", "folder", "files": [{"path", "bytes"}], ' +
    '"bytes", "transferredBytes"}], "next", "remarks"}; with --dry-run, "missingBytes" instead of "transferredBytes", and ' +
    '"missingBytes", "freeBytes" and "fits" for all repositories instead of "next"; without a name, the table as an array.',
  positionals: {
    usage: '[name]',
    help: { name: 'A name of the table, or owner/name[@revision] of a repository on the hub.' },
  },
  options,
  examples: [
    'trawl pull',
    'trawl pull wiki18-e5 --dry-run',
    'trawl pull wiki18-e5 --out /data/hub',
    "trawl pull BeIR/nfcorpus --include '*.jsonl.gz'",
  ],
  resumable: true,
  async run(context) {
    const { positionals, out } = context;
    const { list, type, include, exclude, json } = context.options;
    if (list || positionals.length === 0) {
      if (positionals.length > 0) throw usageError('--list takes no name.');
      out(json ? JSON.stringify(PUBLISHED) : publishedTable());
      return EXIT.ok;
    }
    const pull = await planPull(pullSubject(positionals[0]!, { type, include, exclude }), context);
    if (context.options['dry-run']) return reportDryRun(pull, context);
    requireSpace(pull);
    return reportPull(pull, await download(pull, context), context);
  },
});

type Pull = Awaited<ReturnType<typeof planPull>>;

async function planPull(subject: PullSubject, context: Context) {
  const note = notesOf(context);
  const root = resolve(context.options.out);
  /** One for each part of the subject. */
  const plans: DownloadPlan[] = [];
  const remarks: string[] = [];
  for (const part of subject.parts) {
    const into = join(root, part.repository.name);
    const plan = await planDownload({ ...part, into, signal: context.signal, onNotice: note });
    plans.push(plan);
    remarks.push(...lengthRemarks(part, plan));
  }
  for (const remark of remarks) note(remark);
  const missingBytes = plans.reduce((sum, plan) => sum + plan.missingBytes, 0);
  return { subject, root, plans, remarks, missingBytes, freeBytes: await freeBytes(root) };
}

/** Prints notes, except with --json: the result has all remarks. */
function notesOf({ options, note }: Context): (text: string) => void {
  return options.json ? () => undefined : note;
}

function reportDryRun(pull: Pull, { options, out }: Context): number {
  const { subject, plans, missingBytes, freeBytes: free, remarks } = pull;
  const fits = missingBytes <= free;
  const repositories = subject.parts.map((part, i) => {
    const plan = plans[i]!;
    return { ...repositoryFacts(part, plan), missingBytes: plan.missingBytes };
  });
  const facts = { name: subject.name, repositories, missingBytes, freeBytes: free, fits, remarks };
  out(options.json ? JSON.stringify(facts) : dryRunReport(subject, plans, { missing: missingBytes, free }));
  return fits ? EXIT.ok : EXIT.problems;
}

function requireSpace({ subject, root, missingBytes: needed, freeBytes: free }: Pull): void {
  if (needed <= free) return;
  throw new TrawlError(
    'DISK_FULL',
    `${subject.name} needs ${formatBytes(needed)} more in ${root}, but only ${formatBytes(free)} are free. Free space, or ` +
      'choose a folder on another disk with --out.',
    { details: { needed, free } },
  );
}

async function download({ subject, plans }: Pull, context: Context): Promise<DownloadedRepository[]> {
  const { options, signal } = context;
  const done: DownloadedRepository[] = [];
  for (const [i, part] of subject.parts.entries()) {
    const { commit, folder } = plans[i]!;
    const progress = modelProgress({ silent: options.quiet || options.json });
    notesOf(context)(`${part.repository.name}@${commit.slice(0, 12)} → ${folder}`);
    try {
      const downloading = downloadRepository({
        ...part,
        // The commit of the plan, even if the branch has moved.
        revision: commit,
        into: folder,
        concurrency: options.concurrency,
        signal,
        onProgress: progress.download,
        onNotice: progress.note,
      });
      done.push(await resumable(downloading, 'Stopped. The downloaded parts are kept; the same command resumes.'));
    } finally {
      progress.stop();
    }
  }
  return done;
}

function reportPull(
  { subject, root, plans, remarks }: Pull,
  done: readonly DownloadedRepository[],
  { options, out, note }: Context,
): number {
  const folderOf = (repository: string): string => join(root, repository);
  const next = subject.published === undefined ? [] : nextCommands(subject.published, folderOf);
  if (options.json) {
    const repositories = subject.parts.map((part, i) => ({
      ...repositoryFacts(part, plans[i]!),
      transferredBytes: done[i]!.transferredBytes,
    }));
    out(JSON.stringify({ name: subject.name, repositories, next, remarks }));
    return EXIT.ok;
  }
  for (const { folder, files } of done) for (const { path } of files) out(join(folder, path));
  const transferred = done.reduce((sum, { transferredBytes }) => sum + transferredBytes, 0);
  note(`${formatBytes(transferred)} downloaded; the size and checksum of every file match the hub's.`);
  if (next.length > 0) note(`Next:\n${next.map((command) => `  ${command}`).join('\n')}`);
  return EXIT.ok;
}
