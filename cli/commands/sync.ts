import type { OpenSource } from '../../indexer/sync/copy-source.ts';
import { folderSource } from '../../indexer/sync/folder-source.ts';
import { parseS3Url, s3Source } from '../../indexer/sync/s3-source.ts';
import { parseIndexUrl, serverSource } from '../../indexer/sync/server-source.ts';
import { type SyncReport, syncIndex } from '../../indexer/sync/sync-index.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatBytes, formatNumberOf } from '../../src/base/format.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { freeBytes } from '../../src/base/system/free-bytes.ts';
import { readApiKey } from '../options/api-key.ts';
import * as option from '../options/option.ts';
import { withProgress } from '../output/progress/step-progress.ts';
import { defineCommand, EXIT } from '../program/command.ts';

const options = {
  'dry-run': option.flag(
    'Copy nothing; compare, and print what would be copied. Exit code 3 if it does not fit on the disk.',
  ),
  check: option.flag(
    'Read every file of the copy again and compare it with the manifest, also those that an earlier run checked.',
  ),
  jobs: option.integer({ default: 4, min: 1, max: 16 }, 'Files copied at once.'),
  'limit-rate': option.integer({ value: 'MB', min: 1 }, 'Copy at most this many megabytes (10^6 bytes) per second.'),
  keep: option.integer(
    { default: 2, min: 1, max: 100 },
    'Copies to keep: the current one, and others to go back to, the newest first.',
  ),
  'key-file': option.text(
    'FILE',
    'With a server: file with an API key of the scope admin. Default: the variable TRAWL_SYNC_KEY.',
  ),
  's3-endpoint': option.text(
    'URL',
    "With s3://: the address of a storage other than Amazon's, such as http://minio:9000. Default: AWS_ENDPOINT_URL_S3.",
  ),
  's3-region': option.text('REGION', 'With s3://: the region. Default: AWS_REGION, or the configuration of AWS.'),
  's3-anonymous': option.flag('With s3://: send no credentials, for a public bucket.'),
} as const satisfies OptionTable;

export const syncCommand = defineCommand({
  name: 'sync',
  summary: 'copy an index from a folder, a server or S3, whole or only what has changed',
  description:
    'Copies an index to <destination> and compares every file with the manifest. What is at the destination already, of an older ' +
    'generation or of a copy that was stopped, is not copied again. The source is a folder, an index of a running server ' +
    '(http://HOST:PORT/indexes/NAME), or a folder in S3-compatible storage (s3://BUCKET/FOLDER, with the package ' +
    '@aws-sdk/client-s3).\n\n' +
    '<destination> becomes a symbolic link to a folder in <destination>.copies. A new generation is copied beside the old one, and the ' +
    'link replaced when all is there and checked: whoever opens the destination finds the old generation or the new one, never a ' +
    'mixture. Servers keep the old one until they are reloaded (trawl admin rollout). Killed at any moment, the same command ' +
    'resumes. The model is not part of an index: each machine needs it (trawl model add).\n\n' +
    'With --json: {"state": "copied", "current" or "planned", "source", "destination", "copy", "generation", "previous", "files": ' +
    '{"all", "copied", "present"}, "bytes": {"all", "transferred"}, "removed"}.',
  positionals: {
    usage: '<source> <destination>',
    help: {
      source: 'A folder, http://HOST:PORT/indexes/NAME, or s3://BUCKET/FOLDER.',
      destination: 'Nothing, an empty folder, an earlier copy, or an older generation of the index.',
    },
  },
  options,
  examples: [
    'trawl sync /shared/indexes/wiki18 /local/indexes/wiki18',
    'trawl sync http://builder:8000/indexes/wiki18 indexes/wiki18 --key-file admin.key',
    'trawl sync s3://indexes/wiki18 indexes/wiki18 --s3-endpoint http://minio:9000',
    'trawl sync /shared/indexes/wiki18 indexes/wiki18 --dry-run',
  ],
  resumable: true,
  async run({ options, positionals, given, signal, out, note }) {
    const [from, to] = positionals as [string, string];
    const rate = options['limit-rate'];
    const silent = { quiet: options.quiet || options['dry-run'], json: options.json };
    const report = await withProgress(silent, (show) =>
      syncIndex({
        open: sourceOf(from, options, given),
        destination: to,
        dryRun: options['dry-run'],
        check: options.check,
        jobs: options.jobs,
        bytesPerSecond: rate === undefined ? undefined : 1e6 * rate,
        keep: options.keep,
        signal,
        note,
        onProgress: ({ doneBytes, totalBytes }) =>
          show({
            step: `copying ${from}`,
            share: totalBytes === 0 ? 1 : Math.min(1, doneBytes / totalBytes),
            facts: `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`,
          }),
      }),
    );
    const free = report.state === 'planned' ? await freeBytes(to) : undefined;
    const fits = free === undefined || report.bytes.transferred <= free;
    if (options.json) out(JSON.stringify({ ...report, freeBytes: free, fits: free === undefined ? undefined : fits }));
    else for (const line of linesOf(report, free)) out(line);
    return fits ? EXIT.ok : EXIT.problems;
  },
});

function sourceOf(from: string, options: OptionValues<typeof SOURCE_OPTIONS>, given: ReadonlySet<string>): OpenSource {
  const type = /^https?:/i.test(from) ? 'server' : /^s3:/i.test(from) ? 's3' : 'folder';
  const foreign = Object.keys(SOURCE_OPTIONS).find(
    (name) => given.has(name) && (name === 'key-file' ? 'server' : 's3') !== type,
  );
  if (foreign !== undefined) {
    const needed = foreign === 'key-file' ? 'http://HOST:PORT/indexes/NAME' : 's3://BUCKET/FOLDER';
    throw usageError(`--${foreign} needs a source ${needed}, but it is ${from}.`);
  }
  if (type === 'folder') return folderSource(from);
  if (type === 'server') {
    parseIndexUrl(from);
    return serverSource(from, { apiKey: readApiKey(options['key-file'], { variable: 'TRAWL_SYNC_KEY' }) });
  }
  parseS3Url(from);
  return s3Source(from, {
    endpoint: options['s3-endpoint'],
    region: options['s3-region'],
    anonymous: options['s3-anonymous'],
  });
}

const { 'key-file': keyFile, 's3-endpoint': endpoint, 's3-region': region, 's3-anonymous': anonymous } = options;
const SOURCE_OPTIONS = { 'key-file': keyFile, 's3-endpoint': endpoint, 's3-region': region, 's3-anonymous': anonymous };

function linesOf(
  { state, destination, copy, generation, previous, files, bytes, removed }: SyncReport,
  free: number | undefined,
): string[] {
  const copied = formatNumberOf(files.copied, 'file');
  if (state === 'current') return [`${destination}: generation ${generation} is there already`];
  if (state === 'planned') {
    return [
      `${destination}: generation ${generation}${previous === null ? '' : `, now ${previous}`}`,
      `${copied} to copy, ${files.present} there already; ${formatBytes(bytes.transferred)} to transfer, ${formatBytes(free!)} free`,
    ];
  }
  return [
    `${destination}: generation ${generation}${previous === null || previous === generation ? '' : ` in place of ${previous}`}`,
    `${copied} copied, ${files.present} there already; ${formatBytes(bytes.transferred)} transferred; in ${copy}`,
    ...(removed.length === 0 ? [] : [`removed: ${formatNumberOf(removed.length, 'old copy')}`]),
  ];
}
