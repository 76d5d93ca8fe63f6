import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BallastRequest } from './gpu-ballast.ts';

type Taken = { readonly parts: number } | { readonly error: string };

export interface BallastProcess {
  /** What it took, or why it took nothing: an error of its own, its end, or no answer in time, with what it wrote. */
  take(request: BallastRequest): Promise<Taken>;
  /** Kills it, and resolves when the device has its memory back. */
  end(): Promise<void>;
}

/** CUDA's libraries are loaded and up to a hundred sessions are made. */
const LIMIT_MS = 300_000;

/** Starts the process that takes a device's memory (`gpu-ballast.ts`). */
export function startBallast(
  program = fileURLToPath(new URL('./gpu-ballast.js', import.meta.url)),
  limitMs = LIMIT_MS,
): BallastProcess {
  const child = fork(program, { execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  let written = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (text: string) => (written += text));
  }
  const failure = (what: string): Taken => ({ error: `${what}. It wrote: ${written.trim() || 'nothing'}` });
  // Listened to from the start: it may end at any time.
  const closed = new Promise<Taken>((resolve) => {
    child.once('error', (error) => resolve(failure(`the process could not be used: ${error.message}`)));
    child.once('close', (code, signal) => resolve(failure(`the process ended with ${signal ?? code}`)));
  });
  const answered = new Promise<Taken>((resolve) => child.once('message', (message) => resolve(message as Taken)));
  return {
    async take(request) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<Taken>((resolve) => {
        timer = setTimeout(() => resolve(failure(`the process did not answer in ${limitMs / 1000} s`)), limitMs);
      });
      // A process that has ended cannot be sent to; `closed` says so.
      child.send(request, () => undefined);
      try {
        return await Promise.race([answered, closed, late]);
      } finally {
        clearTimeout(timer);
      }
    },
    async end() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}
