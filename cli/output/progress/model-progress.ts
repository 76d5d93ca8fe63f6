import cliProgress from 'cli-progress';
import type { DownloadProgress } from '../../../indexer/hub/download-repository.ts';
import { formatBytes, formatDuration } from '../../../src/base/format.ts';
import { percent, stepLog } from './displays.ts';

const LOG_EVERY_MS = 10_000;

export interface ModelProgress {
  download(progress: DownloadProgress): void;
  /** A stage of the import; `done` and `total` are in the same unit. */
  step(progress: { readonly stage: string; readonly done: number; readonly total: number }): void;
  note(text: string): void;
  stop(): void;
}

/** Shows downloads and imports on stderr: bars on a terminal, a line every ten seconds in a log. */
export function modelProgress({ silent }: { silent: boolean }): ModelProgress {
  const nothing = (): void => undefined;
  if (silent) return { download: nothing, step: nothing, note: nothing, stop: nothing };
  return process.stderr.isTTY === true ? terminalBars() : logLines();
}

function terminalBars(): ModelProgress {
  const bars = new Map<string, cliProgress.SingleBar>();
  let multi: cliProgress.MultiBar | undefined;
  const totals = downloadTotals();
  const multiBar = (): cliProgress.MultiBar => {
    multi ??= new cliProgress.MultiBar(
      { format: '{name} [{bar}] {percentage}% {facts}', stream: process.stderr, hideCursor: true, barsize: 24 },
      cliProgress.Presets.legacy,
    );
    return multi;
  };
  const show = (name: string, part: number, facts: string): void => {
    let bar = bars.get(name);
    if (bar === undefined) {
      bar = multiBar().create(1000, 0, { name: shortened(name), facts: '' });
      bars.set(name, bar);
    }
    bar.update(Math.round(1000 * part), { facts });
  };
  return {
    download(progress) {
      const { path, bytes, totalBytes } = progress;
      // No bars for small files, which finish before a user could read them.
      if (totalBytes >= 1e6) show(path, bytes / totalBytes, `${formatBytes(bytes)}/${formatBytes(totalBytes)}`);
      show('all files', share(progress), totals(progress));
    },
    step({ stage, done, total }) {
      show(stage, total > 0 ? done / total : 1, '');
    },
    note(text) {
      if (multi === undefined) process.stderr.write(`${text}\n`);
      else multi.log(`${text}\n`);
    },
    stop() {
      multi?.stop();
      multi = undefined;
      bars.clear();
    },
  };
}

function logLines(): ModelProgress {
  const log = stepLog(LOG_EVERY_MS);
  const totals = downloadTotals();
  return {
    note: (text) => void process.stderr.write(`${text}\n`),
    stop: () => undefined,
    download(progress) {
      log('downloading', (isFirst) => {
        const facts = totals(progress);
        if (!isFirst) return `downloading ${percent(share(progress))} ${facts}`;
        return `downloading ${progress.totalFiles} files, ${formatBytes(progress.allTotalBytes)}`;
      });
    },
    step: ({ stage, done, total }) =>
      log(stage, (isFirst) => (isFirst ? stage : `${stage} ${percent(done / Math.max(1, total))}`)),
  };
}

function share({ allBytes, allTotalBytes }: DownloadProgress): number {
  return allTotalBytes > 0 ? allBytes / allTotalBytes : 1;
}

/** Says what is downloaded, how fast since the first call, and how long the rest will take. */
function downloadTotals(): (progress: DownloadProgress) => string {
  let first: { readonly ms: number; readonly bytes: number } | undefined;
  return ({ allBytes, allTotalBytes, finishedFiles, totalFiles }) => {
    // An earlier run may have downloaded some bytes.
    first ??= { ms: performance.now(), bytes: allBytes };
    const elapsedMs = performance.now() - first.ms;
    const done = `${formatBytes(allBytes)}/${formatBytes(allTotalBytes)}, ${finishedFiles}/${totalFiles} files`;
    const perMs = (allBytes - first.bytes) / elapsedMs;
    if (elapsedMs < 500 || perMs <= 0) return done;
    const left = allBytes < allTotalBytes ? `, ${formatDuration((allTotalBytes - allBytes) / perMs)} left` : '';
    return `${done}, ${formatBytes(perMs * 1000)}/s${left}`;
  };
}

function shortened(name: string): string {
  return (name.length > 28 ? `…${name.slice(-27)}` : name).padEnd(28);
}
