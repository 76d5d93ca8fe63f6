import { readFileSync } from 'node:fs';

/** Peak resident memory of a running process, its mapped files included, in bytes. Linux only; elsewhere null. */
export function processPeakBytes(pid: number): number | null {
  try {
    const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return line === null ? null : Number(line[1]) * 1024;
  } catch {
    return null;
  }
}
