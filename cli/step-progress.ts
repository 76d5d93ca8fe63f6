import cliProgress from 'cli-progress';
import { formatDuration } from './format.ts';

/** Between two lines in a log. */
const LOG_EVERY_MS = 60_000;

export interface StepProgress {
  /** What is being done, in a few words. */
  readonly step: string;
  /** How much of the whole is done, 0 to 1. */
  readonly share: number;
  /** More in words; may be empty. */
  readonly facts: string;
}

export interface ShownSteps {
  update(progress: StepProgress): void;
  stop(): void;
}

/** Shows work of several steps on stderr: one bar for the whole on a terminal; in a log a line a step and a line a minute. */
export function stepProgress({ silent }: { silent: boolean }): ShownSteps {
  if (silent) return { update: () => undefined, stop: () => undefined };
  const left = timeLeft();
  return process.stderr.isTTY === true ? terminalBar(left) : logLines(left);
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

function timeLeft(): TimeLeft {
  const started = performance.now();
  return (share) => {
    const ms = performance.now() - started;
    return share > 0 && share < 1 && ms > 1000 ? `${formatDuration((ms * (1 - share)) / share)} left` : '';
  };
}
