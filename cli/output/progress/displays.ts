import cliProgress from 'cli-progress';

/** Shows a bar on stderr. Update it with thousandths and `{ facts }`. */
export function startBar(title = ''): cliProgress.SingleBar {
  const format = `${title}[{bar}] {percentage}% {facts}`;
  const settings = { format, stream: process.stderr, hideCursor: true, barsize: 30 };
  const bar = new cliProgress.SingleBar(settings, cliProgress.Presets.legacy);
  bar.start(1000, 0, { facts: '' });
  return bar;
}

/** Writes a line to the log on stderr when a step begins, and another one whenever `everyMs` have passed in it. */
export function stepLog(everyMs: number): (step: string, line: (isFirst: boolean) => string) => void {
  let current: string | undefined;
  let nextAt = 0;
  return (step, line) => {
    const now = performance.now();
    const isFirst = step !== current;
    if (!isFirst && now < nextAt) return;
    process.stderr.write(`${line(isFirst)}\n`);
    current = step;
    nextAt = now + everyMs;
  };
}

/** 0.1234 → 12.3% */
export function percent(share: number): string {
  return `${(100 * share).toFixed(1)}%`;
}
