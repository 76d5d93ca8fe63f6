import { readFileSync, writeFileSync } from 'node:fs';

/** Resident memory of this process, in bytes. */
export function residentBytes(): number {
  return process.memoryUsage.rss();
}

/** Peak resident memory of this process since `resetPeak`, in bytes. Except on Linux: since the process started. */
export function peakBytes(): number {
  try {
    const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'));
    if (line !== null) return Number(line[1]) * 1024;
  } catch {
    // Not Linux.
  }
  // libuv gives kilobytes on every system.
  return process.resourceUsage().maxRSS * 1024;
}

export function resetPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // Not Linux.
  }
}
