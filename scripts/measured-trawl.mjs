// `trawl` of this checkout as a child process whose memory and times are measured.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from './steps.mjs';

/**
 * Starts `trawl` with these words, in a control group if one is given. An abort of `signal` sends SIGTERM. `ended` resolves to the exit
 * code and the largest memory.
 */
export function startTrawl(words, { group, signal } = {}) {
  const command = [process.execPath, join(root, 'dist', 'cli', 'trawl.js'), ...words];
  const child =
    group === undefined
      ? spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
      : group.spawn(command, { env: process.env });
  const stop = () => child.kill('SIGTERM');
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  let peakBytes = 0;
  const timer = setInterval(() => (peakBytes = Math.max(peakBytes, statusBytes(child.pid, 'VmHWM'))), 200);
  const ended = once(child, 'close')
    .then(([code]) => ({ code, peakBytes }))
    .finally(() => {
      clearInterval(timer);
      signal?.removeEventListener('abort', stop);
    });
  return { process: child, ended };
}

/** Starts `trawl serve` and waits until it is ready. `stop` resolves once it has ended. */
export async function serveTrawl(words, options) {
  const from = performance.now();
  const child = startTrawl(['serve', ...words, '--port', '0', '--json'], options);
  const stop = async () => {
    child.process.kill('SIGTERM');
    await child.ended;
  };
  child.process.stderr.resume();
  try {
    const [line] = await Promise.race([
      once(createInterface(child.process.stdout), 'line'),
      child.ended.then(({ code }) => Promise.reject(new Error(`trawl serve ended with ${code}`))),
    ]);
    const readyMs = Math.round(performance.now() - from);
    const { url, pid } = JSON.parse(line);
    return { url, pid, readyMs, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A field of /proc/PID/status in bytes; 0 without /proc, and for a process that has ended. */
export function statusBytes(pid, field) {
  try {
    const [, kilobytes] = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return 1024 * Number(kilobytes ?? 0);
  } catch {
    return 0;
  }
}

/** Seconds since a `performance.now()`, to a tenth. */
export function secondsSince(from) {
  return Math.round((performance.now() - from) / 100) / 10;
}
