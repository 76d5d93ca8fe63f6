import cliProgress from 'cli-progress';
import type { BuildProgress, BuildStage, OnProgress } from '../indexer/build-events.ts';
import { formatCount, formatDuration } from './format.ts';

const LABELS: Readonly<Record<BuildStage, string>> = { read: 'reading', encode: 'encoding', finish: 'finishing' };
/** Between two lines in a log. */
const LOG_EVERY_MS = 60_000;

/** Shows a build's progress on stderr: one bar per stage on a terminal, plain lines now and then in a log. */
export function buildProgress({ silent }: { silent: boolean }): { update: OnProgress; stop(): void } {
  if (silent) return { update: () => undefined, stop: () => undefined };
  return process.stderr.isTTY === true ? terminalBars() : logLines();
}

function terminalBars(): { update: OnProgress; stop(): void } {
  let bar: cliProgress.SingleBar | undefined;
  let stage: BuildStage | undefined;
  let started = 0;
  const stop = (): void => {
    bar?.stop();
    bar = undefined;
  };
  return {
    stop,
    update(progress) {
      if (progress.stage !== stage) {
        stop();
        stage = progress.stage;
        started = performance.now();
        bar = new cliProgress.SingleBar(
          {
            format: `${LABELS[stage].padEnd(9)} [{bar}] {percentage}% {facts}`,
            stream: process.stderr,
            hideCursor: true,
            barsize: 30,
          },
          cliProgress.Presets.legacy,
        );
        bar.start(1000, 0, { facts: '' });
      }
      bar?.update(Math.round(1000 * share(progress)), { facts: facts(progress, performance.now() - started) });
    },
  };
}

function logLines(): { update: OnProgress; stop(): void } {
  let stage: BuildStage | undefined;
  let started = 0;
  let nextLine = 0;
  return {
    stop: () => undefined,
    update(progress) {
      const now = performance.now();
      if (progress.stage !== stage) {
        stage = progress.stage;
        started = now;
        nextLine = now + LOG_EVERY_MS;
        process.stderr.write(`${LABELS[stage]}\n`);
      } else if (now >= nextLine) {
        nextLine = now + LOG_EVERY_MS;
        const percent = (100 * share(progress)).toFixed(1);
        process.stderr.write(`${LABELS[stage]} ${percent}% ${facts(progress, now - started)}\n`);
      }
    },
  };
}

/** How far the stage is, 0 to 1. */
function share(progress: BuildProgress): number {
  if (progress.stage === 'finish') return 1;
  if (progress.stage === 'read') return progress.readShare ?? 0;
  return progress.totalPassages ? progress.passages / progress.totalPassages : 1;
}

function facts(progress: BuildProgress, elapsedMs: number): string {
  const { passages, totalPassages } = progress;
  if (progress.stage === 'finish') return `${formatCount(passages)} passages`;
  const done =
    totalPassages === undefined ? formatCount(passages) : `${formatCount(passages)}/${formatCount(totalPassages)}`;
  const seconds = elapsedMs / 1000;
  if (seconds < 0.5) return `${done} passages`;
  const part = share(progress);
  const left = part > 0 && part < 1 ? `, ${formatDuration((elapsedMs * (1 - part)) / part)} left` : '';
  const rate = `${formatCount(Math.round(passages / seconds))} passages/s`;
  const tokens =
    progress.tokens === undefined ? '' : `, ${formatCount(Math.round(progress.tokens / seconds))} tokens/s`;
  return `${done} passages, ${rate}${tokens}${left}`;
}
