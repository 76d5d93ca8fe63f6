import cliProgress from 'cli-progress';
import { formatCount, formatDuration } from '../../../src/base/format.ts';
import type { ShownStep } from '../../../training/iteration/iteration-steps.ts';
import type { TriageProgress } from '../../../training/triage/triage-model.ts';

/** Interval between two lines of a log. */
const LOG_EVERY_MS = 60_000;

interface StepProgress {
  /** The current step, in a few words. */
  readonly step: string;
  /** The finished share of the whole work, 0 to 1. */
  readonly share: number;
  /** Details; may be empty. */
  readonly facts: string;
}

export type ShownSteps = ShownStep<StepProgress>;

/** Shows the progress of several steps on stderr: one bar on a terminal, a line per step and minute in a log. */
export function stepProgress({ silent }: { silent: boolean }): ShownSteps {
  if (silent) return { update: () => undefined, stop: () => undefined };
  const left = timeLeft();
  return process.stderr.isTTY === true ? terminalBar(left) : logLines(left);
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
  let bar: cliProgress.SingleBar | undefined;
  return {
    update({ step, share, facts }) {
      if (bar === undefined) {
        bar = new cliProgress.SingleBar(
          { format: '[{bar}] {percentage}% {facts}', stream: process.stderr, hideCursor: true, barsize: 30 },
          cliProgress.Presets.legacy,
        );
        bar.start(1000, 0, { facts: '' });
      }
      bar.update(Math.round(1000 * share), {
        facts: [step, facts, left(share)].filter((part) => part !== '').join(', '),
      });
    },
    stop() {
      bar?.stop();
      bar = undefined;
    },
  };
}

function logLines(left: TimeLeft): ShownSteps {
  let last = '';
  let nextLine = 0;
  return {
    update({ step, share, facts }) {
      const now = performance.now();
      if (step !== last) process.stderr.write(`${step}\n`);
      else if (now >= nextLine) {
        const percent = `${(100 * share).toFixed(1)}%`;
        process.stderr.write(`${[percent, step, facts, left(share)].filter((part) => part !== '').join(', ')}\n`);
      } else return;
      last = step;
      nextLine = now + LOG_EVERY_MS;
    },
    stop: () => undefined,
  };
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
