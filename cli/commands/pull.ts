import { join, resolve } from 'node:path';
import { type DownloadedRepository, downloadRepository } from '../../indexer/hub/download-repository.ts';
import { type DownloadPlan, planDownload } from '../../indexer/hub/plan-download.ts';
import { PUBLISHED } from '../../indexer/hub/published.ts';
import { asTrawlError, TrawlError, usageError } from '../../src/base/errors.ts';
import { formatBytes } from '../../src/base/format.ts';
import { freeBytes } from '../../src/base/system/free-bytes.ts';
import { nextCommands } from '../model/pull-next.ts';
import { dryRunReport, lengthRemarks, publishedTable, repositoryFacts } from '../model/pull-report.ts';
import { type PullSubject, pullSubject } from '../model/pull-subject.ts';
import { modelProgress } from '../output/progress/model-progress.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';

const options = {
  out: {
    type: 'string',
    value: 'DIR',
    default: 'downloads',
    help: 'Folder for all repositories. The files of owner/name go to DIR/owner/name, so that files that two names share are downloaded once.',
  },
  list: { type: 'flag', help: 'List the table, as without a name.' },
  'dry-run': {
    type: 'flag',
    help: 'Download nothing; print files, sizes (from the hub) and free space. Exit code 3 if the files do not fit.',
  },
  include: {
    type: 'list',
    value: 'PATTERN',
    help: 'With owner/name: download only files whose path matches; * stands for any characters including slashes, ? for one.',
  },
  exclude: { type: 'list', value: 'PATTERN', help: 'With owner/name: skip files whose path matches.' },
  type: {
    type: 'choice',
    choices: ['dataset', 'model'],
    default: 'dataset',
    help: 'Type of the repository owner/name. To use a model as an encoder, run `trawl model add` instead.',
  },
  concurrency: { type: 'integer', value: 'N', default: 4, min: 1, max: 32, help: 'Files downloaded at once.' },
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
    min: 0,
    max: 1,
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

interface Pull {
  readonly subject: PullSubject;
  readonly root: string;
  /** One for each part of the subject. */
  readonly plans: readonly DownloadPlan[];
  readonly remarks: readonly string[];
  readonly missingBytes: number;
  readonly freeBytes: number;
}

async function planPull(subject: PullSubject, context: Context): Promise<Pull> {
  const note = notesOf(context);
  const root = resolve(context.options.out);
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
  if (options.json) {
    const repositories = subject.parts.map((part, i) => ({
      ...repositoryFacts(part, plans[i]!),
      missingBytes: plans[i]!.missingBytes,
    }));
    out(JSON.stringify({ name: subject.name, repositories, missingBytes, freeBytes: free, fits, remarks }));
  } else out(dryRunReport(subject, plans, { missing: missingBytes, free }));
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
      done.push(
        await downloadRepository({
          ...part,
          // The commit of the plan, even if the branch has moved.
          revision: commit,
          into: folder,
          concurrency: options.concurrency,
          signal,
          onProgress: progress.download,
          onNotice: progress.note,
        }),
      );
    } catch (error) {
      throw resumableIfCancelled(error);
    } finally {
      progress.stop();
    }
  }
  return done;
}

function resumableIfCancelled(error: unknown): unknown {
  if (asTrawlError(error).code !== 'CANCELLED') return error;
  return new TrawlError('CANCELLED', 'Stopped. The downloaded parts are kept; the same command resumes.', {
    details: { resumable: true },
    cause: error,
  });
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
