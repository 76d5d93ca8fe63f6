import type { SingleBar } from 'cli-progress';
import { formatCount, formatDuration } from '../../../src/base/format.ts';
import type { ShownStep } from '../../../training/iteration/iteration-steps.ts';
import type { TriageProgress } from '../../../training/triage/triage-model.ts';
import { percent, startBar, stepLog } from './displays.ts';

const LOG_EVERY_MS = 60_000;

interface StepProgress {
  /** The current step, in a few words. */
  readonly step: string;
  /** The finished share of the whole work, 0 to 1. */
  readonly share: number;
  /** Details; may be empty. */
  readonly facts: string;
}

type ShownSteps = ShownStep<StepProgress>;
export type ShowStep = ShownSteps['update'];

/** Shows the progress of several steps on stderr: one bar on a terminal, a line per step and minute in a log. */
function stepProgress({ silent }: { silent: boolean }): ShownSteps {
  if (silent) return { update: () => undefined, stop: () => undefined };
  const left = timeLeft();
  return process.stderr.isTTY === true ? terminalBar(left) : logLines(left);
}

/** Runs work with its progress on stderr, but with `--quiet` or `--json`. The display ends before the result is printed. */
export async function withProgress<T>(
  { quiet, json }: { readonly quiet: boolean; readonly json: boolean },
  work: (show: ShowStep) => Promise<T>,
): Promise<T> {
  const progress = stepProgress({ silent: quiet || json });
  try {
    return await work(progress.update);
  } finally {
    progress.stop();
  }
}

/** Shows the progress of a trial of a model (`trawl triage`, `trawl iterate --triage`). */
export function triageProgress(settings: { silent: boolean }): ShownStep<TriageProgress> {
  const { update, stop } = stepProgress(settings);
  return {
    update: ({ step, done, total }) =>
      update({
        step,
        share: total === 0 ? 1 : done / total,
        facts: total === 1 ? '' : `${formatCount(done)} of ${formatCount(total)}`,
      }),
    stop,
  };
}

type TimeLeft = (share: number) => string;

function terminalBar(left: TimeLeft): ShownSteps {
  let bar: SingleBar | undefined;
  return {
    update({ step, share, facts }) {
      bar ??= startBar();
      bar.update(Math.round(1000 * share), { facts: joined(step, facts, left(share)) });
    },
    stop() {
      bar?.stop();
      bar = undefined;
    },
  };
}

function logLines(left: TimeLeft): ShownSteps {
  const log = stepLog(LOG_EVERY_MS);
  return {
    update: ({ step, share, facts }) =>
      log(step, (isFirst) => (isFirst ? step : joined(percent(share), step, facts, left(share)))),
    stop: () => undefined,
  };
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}

/** Counts from the first update: what an earlier run has done, if this one resumes it, took none of the time. */
function timeLeft(): TimeLeft {
  let first: { readonly ms: number; readonly share: number } | undefined;
  return (share) => {
    first ??= { ms: performance.now(), share };
    const ms = performance.now() - first.ms;
    const done = share - first.share;
    return done > 0 && share < 1 && ms > 1000 ? `${formatDuration((ms * (1 - share)) / done)} left` : '';
  };
}
