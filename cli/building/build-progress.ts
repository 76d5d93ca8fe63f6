import type { SingleBar } from 'cli-progress';
import type { BuildProgress, BuildStage, OnProgress } from '../../indexer/building/stages.ts';
import { formatCount, formatDuration } from '../../src/base/format.ts';
import { lines } from '../output/lines.ts';
import { percent, startBar, stepLog } from '../output/progress/displays.ts';

const LABELS: Readonly<Record<BuildStage, string>> = {
  scan: 'scanning',
  compare: 'comparing',
  read: 'reading',
  encode: 'encoding',
  vectors: 'reading vectors',
  words: 'indexing terms',
  finish: 'finishing',
};
const LOG_EVERY_MS = 60_000;
const EVENT_EVERY_MS = 10_000;

export interface ShownProgress {
  readonly update: OnProgress;
  stop(): void;
}

/**
 * Shows a build's progress on stderr: a bar per stage on a terminal, a line per stage and minute in a log, JSON lines with `json`.
 * The encoder threads share one queue, so one bar shows them all.
 */
export function buildProgress({ silent, json }: { silent: boolean; json: boolean }): ShownProgress {
  if (silent) return { update: () => undefined, stop: () => undefined };
  if (json) return events();
  return process.stderr.isTTY === true ? terminalBars() : logLines();
}

function terminalBars(): ShownProgress {
  let bar: SingleBar | undefined;
  const pace = new Pace();
  const stop = (): void => {
    bar?.stop();
    bar = undefined;
  };
  return {
    stop,
    update(progress) {
      if (pace.observe(progress)) {
        stop();
        bar = startBar(`${LABELS[progress.stage].padEnd(15)} `);
      }
      bar?.update(Math.round(1000 * share(progress)), { facts: facts(progress, pace) });
    },
  };
}

function logLines(): ShownProgress {
  const pace = new Pace();
  const log = stepLog(LOG_EVERY_MS);
  return {
    stop: () => undefined,
    update(progress) {
      pace.observe(progress);
      const label = LABELS[progress.stage];
      log(label, (isFirst) => (isFirst ? label : `${label} ${percent(share(progress))} ${facts(progress, pace)}`));
    },
  };
}

function events(): ShownProgress {
  const pace = new Pace();
  const log = stepLog(EVENT_EVERY_MS);
  return {
    stop: () => undefined,
    update(progress) {
      pace.observe(progress);
      log(progress.stage, () => {
        const { passagesPerS, tokensPerS, msLeft } = pace.of(progress);
        return JSON.stringify({
          event: 'progress',
          ...progress,
          share: Number(share(progress).toFixed(4)),
          passagesPerS: passagesPerS && Math.round(passagesPerS),
          tokensPerS: tokensPerS && Math.round(tokensPerS),
          secondsLeft: msLeft && Math.round(msLeft / 1000),
        });
      });
    },
  };
}

/** Measures the speed of a stage, not counting the work of an earlier run. */
class Pace {
  #stage: BuildStage | undefined;
  #startedAt = 0;
  #startShare = 0;
  #startPassages = 0;

  /** Whether a new stage begins. */
  observe(progress: BuildProgress): boolean {
    if (progress.stage === this.#stage) return false;
    this.#stage = progress.stage;
    this.#startedAt = performance.now();
    this.#startShare = share(progress);
    this.#startPassages = progress.passages;
    return true;
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
  return lines(
    progress.stage === 'scan' ? 'checksums' : `${formatCount(passages)}${of} passages`,
    passagesPerS !== undefined && `${formatCount(Math.round(passagesPerS))} passages/s`,
    tokensPerS !== undefined && `${formatCount(Math.round(tokensPerS))} tokens/s`,
    shard !== undefined && shards !== undefined && shards > 1 && `shard ${shard}/${shards}`,
    msLeft !== undefined && `${formatDuration(msLeft)} left`,
  ).join(', ');
}
