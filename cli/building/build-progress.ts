import cliProgress from 'cli-progress';
import type { BuildProgress, BuildStage, OnProgress } from '../../indexer/build-events.ts';
import { formatCount, formatDuration } from '../../src/base/format.ts';

const LABELS: Readonly<Record<BuildStage, string>> = {
  scan: 'scanning',
  compare: 'comparing',
  read: 'reading',
  encode: 'encoding',
  vectors: 'reading vectors',
  words: 'indexing terms',
  finish: 'finishing',
};
/** Interval between two lines of a log. */
const LOG_EVERY_MS = 60_000;
/** Interval between two JSON events of a stage. */
const EVENT_EVERY_MS = 10_000;

export interface ShownProgress {
  readonly update: OnProgress;
  stop(): void;
}

/**
 * Shows a build's progress on stderr: a bar per stage on a terminal, a line per stage and minute in a log, JSON lines with `json`.
 * There is no bar per encoder thread: the threads share one queue, so all bars would be equal.
 */
export function buildProgress({ silent, json }: { silent: boolean; json: boolean }): ShownProgress {
  if (silent) return { update: () => undefined, stop: () => undefined };
  if (json) return events();
  return process.stderr.isTTY === true ? terminalBars() : logLines();
}

function terminalBars(): ShownProgress {
  let bar: cliProgress.SingleBar | undefined;
  const pace = new Pace();
  const stop = (): void => {
    bar?.stop();
    bar = undefined;
  };
  return {
    stop,
    update(progress) {
      if (pace.observe(progress).isNewStage) {
        stop();
        bar = new cliProgress.SingleBar(
          {
            format: `${LABELS[progress.stage].padEnd(15)} [{bar}] {percentage}% {facts}`,
            stream: process.stderr,
            hideCursor: true,
            barsize: 30,
          },
          cliProgress.Presets.legacy,
        );
        bar.start(1000, 0, { facts: '' });
      }
      bar?.update(Math.round(1000 * share(progress)), { facts: facts(progress, pace) });
    },
  };
}

function logLines(): ShownProgress {
  const pace = new Pace();
  let nextLine = 0;
  return {
    stop: () => undefined,
    update(progress) {
      const { isNewStage, now } = pace.observe(progress);
      if (isNewStage) {
        nextLine = now + LOG_EVERY_MS;
        process.stderr.write(`${LABELS[progress.stage]}\n`);
      } else if (now >= nextLine) {
        nextLine = now + LOG_EVERY_MS;
        const percent = (100 * share(progress)).toFixed(1);
        process.stderr.write(`${LABELS[progress.stage]} ${percent}% ${facts(progress, pace)}\n`);
      }
    },
  };
}

function events(): ShownProgress {
  const pace = new Pace();
  let nextEvent = 0;
  return {
    stop: () => undefined,
    update(progress) {
      const { isNewStage, now } = pace.observe(progress);
      if (!isNewStage && now < nextEvent) return;
      nextEvent = now + EVENT_EVERY_MS;
      const { passagesPerS, tokensPerS, msLeft } = pace.of(progress);
      const event = {
        event: 'progress',
        ...progress,
        share: Number(share(progress).toFixed(4)),
        passagesPerS: passagesPerS === undefined ? undefined : Math.round(passagesPerS),
        tokensPerS: tokensPerS === undefined ? undefined : Math.round(tokensPerS),
        secondsLeft: msLeft === undefined ? undefined : Math.round(msLeft / 1000),
      };
      process.stderr.write(`${JSON.stringify(event)}\n`);
    },
  };
}

/** Measures the speed of a stage, not counting the work of an earlier run. */
class Pace {
  #stage: BuildStage | undefined;
  #startedAt = 0;
  #startShare = 0;
  #startPassages = 0;

  observe(progress: BuildProgress): { isNewStage: boolean; now: number } {
    const now = performance.now();
    const isNewStage = progress.stage !== this.#stage;
    if (isNewStage) {
      this.#stage = progress.stage;
      this.#startedAt = now;
      this.#startShare = share(progress);
      this.#startPassages = progress.passages;
    }
    return { isNewStage, now };
  }

  of(progress: BuildProgress): { passagesPerS?: number; tokensPerS?: number; msLeft?: number } {
    const ms = performance.now() - this.#startedAt;
    if (ms < 500) return {};
    const done = share(progress) - this.#startShare;
    const left = 1 - share(progress);
    return {
      ...(progress.stage === 'scan' ? {} : { passagesPerS: (1000 * (progress.passages - this.#startPassages)) / ms }),
      tokensPerS: progress.tokens === undefined ? undefined : (1000 * progress.tokens) / ms,
      ...(done > 0 && left > 0 ? { msLeft: (ms * left) / done } : {}),
    };
  }
}

/** The finished share of the stage, 0 to 1. */
function share(progress: BuildProgress): number {
  if (progress.stage === 'finish') return 1;
  if (progress.readShare !== undefined) return progress.readShare;
  return progress.totalPassages ? progress.passages / progress.totalPassages : 0;
}

function facts(progress: BuildProgress, pace: Pace): string {
  const { passages, totalPassages, shard, shards } = progress;
  if (progress.stage === 'finish') return `${formatCount(passages)} passages`;
  const { passagesPerS, tokensPerS, msLeft } = pace.of(progress);
  const of = totalPassages === undefined ? '' : `/${formatCount(totalPassages)}`;
  return [
    progress.stage === 'scan' ? 'checksums' : `${formatCount(passages)}${of} passages`,
    passagesPerS === undefined ? '' : `${formatCount(Math.round(passagesPerS))} passages/s`,
    tokensPerS === undefined ? '' : `${formatCount(Math.round(tokensPerS))} tokens/s`,
    shard === undefined || shards === undefined || shards < 2 ? '' : `shard ${shard}/${shards}`,
    msLeft === undefined ? '' : `${formatDuration(msLeft)} left`,
  ]
    .filter((fact) => fact !== '')
    .join(', ');
}
