import { readFileSync, writeFileSync } from 'node:fs';

/** Memory of this process in bytes, now. */
export function residentBytes(): number {
  return process.memoryUsage.rss();
}

/** Most memory this process had since `resetPeak`; where the system cannot tell (not Linux), in its whole life. */
export function peakBytes(): number {
  try {
    const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'));
    if (line !== null) return Number(line[1]) * 1024;
  } catch {
    // No such file: not Linux.
  }
  // Kilobytes on every system, as libuv has it.
  return process.resourceUsage().maxRSS * 1024;
}

export function resetPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // Not Linux: the peak stays that of the process's whole life.
  }
}
