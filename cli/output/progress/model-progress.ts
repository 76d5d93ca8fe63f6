import cliProgress from 'cli-progress';
import type { DownloadProgress } from '../../../indexer/hub/download-repository.ts';
import { formatBytes, formatDuration } from '../../../src/base/format.ts';

/** Interval between two lines of a log. */
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
  let started = 0;
  let startBytes = 0;
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
      if (started === 0) {
        started = performance.now();
        startBytes = progress.allBytes;
      }
      const { path, bytes, totalBytes } = progress;
      // No bars for small files, which finish before a user could read them.
      if (totalBytes >= 1e6) show(path, bytes / totalBytes, `${formatBytes(bytes)}/${formatBytes(totalBytes)}`);
      show('all files', share(progress), totals(progress, performance.now() - started, startBytes));
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
  let started = 0;
  let startBytes = 0;
  let nextLine = 0;
  let stage = '';
  const note = (text: string): void => void process.stderr.write(`${text}\n`);
  return {
    note,
    stop: () => undefined,
    download(progress) {
      const now = performance.now();
      if (started === 0) {
        started = now;
        startBytes = progress.allBytes;
        nextLine = now + LOG_EVERY_MS;
        note(`downloading ${progress.totalFiles} files, ${formatBytes(progress.allTotalBytes)}`);
      } else if (now >= nextLine) {
        nextLine = now + LOG_EVERY_MS;
        note(`downloading ${(100 * share(progress)).toFixed(1)}% ${totals(progress, now - started, startBytes)}`);
      }
    },
    step(progress) {
      const now = performance.now();
      if (progress.stage !== stage) {
        stage = progress.stage;
        nextLine = now + LOG_EVERY_MS;
        note(stage);
      } else if (now >= nextLine) {
        nextLine = now + LOG_EVERY_MS;
        note(`${stage} ${((100 * progress.done) / Math.max(1, progress.total)).toFixed(1)}%`);
      }
    },
  };
}

function share({ allBytes, allTotalBytes }: DownloadProgress): number {
  return allTotalBytes > 0 ? allBytes / allTotalBytes : 1;
}

/** `startBytes`: bytes that an earlier run had downloaded. */
function totals(progress: DownloadProgress, elapsedMs: number, startBytes: number): string {
  const { allBytes, allTotalBytes, finishedFiles, totalFiles } = progress;
  const done = `${formatBytes(allBytes)}/${formatBytes(allTotalBytes)}, ${finishedFiles}/${totalFiles} files`;
  const perMs = (allBytes - startBytes) / elapsedMs;
  if (elapsedMs < 500 || perMs <= 0) return done;
  const left = allBytes < allTotalBytes ? `, ${formatDuration((allTotalBytes - allBytes) / perMs)} left` : '';
  return `${done}, ${formatBytes(perMs * 1000)}/s${left}`;
}

function shortened(name: string): string {
  return (name.length > 28 ? `…${name.slice(-27)}` : name).padEnd(28);
}
