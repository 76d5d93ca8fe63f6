import cliProgress from 'cli-progress';
import type { PrepareProgress } from '../../../indexer/prepare/prepare-passages.ts';
import { formatBytes, formatCount, formatDuration } from '../../../src/base/format.ts';

/** Interval between two lines of a log. */
const LOG_EVERY_MS = 60_000;

/** Shows progress on stderr: a bar on a terminal, a line per minute in a log. */
export function prepareProgress({ silent }: { silent: boolean }): {
  update: (progress: PrepareProgress) => void;
  stop: () => void;
} {
  if (silent) return { update: () => undefined, stop: () => undefined };
  const started = performance.now();
  return process.stderr.isTTY === true ? terminalBar(started) : logLines(started);
}

function terminalBar(started: number): ReturnType<typeof prepareProgress> {
  const bar = new cliProgress.SingleBar(
    { format: 'preparing [{bar}] {percentage}% {facts}', stream: process.stderr, hideCursor: true, barsize: 30 },
    cliProgress.Presets.legacy,
  );
  bar.start(1000, 0, { facts: '' });
  return {
    update: (progress) => bar.update(Math.round(1000 * share(progress)), { facts: facts(progress, started) }),
    stop: () => bar.stop(),
  };
}

function logLines(started: number): ReturnType<typeof prepareProgress> {
  let nextLine = started + LOG_EVERY_MS;
  return {
    update(progress) {
      const now = performance.now();
      if (now < nextLine) return;
      nextLine = now + LOG_EVERY_MS;
      process.stderr.write(`preparing ${(100 * share(progress)).toFixed(1)}% ${facts(progress, started)}\n`);
    },
    stop: () => undefined,
  };
}

/** The share of the files that has been read, 0 to 1; always 0 for pipes. */
function share({ readBytes, sizeBytes }: PrepareProgress): number {
  return sizeBytes > 0 ? Math.min(1, readBytes / sizeBytes) : 0;
}

function facts(progress: PrepareProgress, started: number): string {
  const elapsedMs = performance.now() - started;
  const done = share(progress);
  const rate = formatCount(Math.round((1000 * progress.passages) / Math.max(1, elapsedMs)));
  const left = done > 0 && done < 1 ? `, ${formatDuration((elapsedMs * (1 - done)) / done)} left` : '';
  return `${formatCount(progress.passages)} passages of ${formatCount(progress.documents)} documents, ${rate} passages/s, ${formatBytes(progress.writtenBytes)} written${left}`;
}
