import { freemem } from 'node:os';
import { controlGroupTexts, type ReadText, readTextFile } from './control-group.ts';

/** Bytes that this process may still use: what the machine has free, or its control group's limit where that leaves less. */
export function availableMemory(readText: ReadText = readTextFile, free: number = machineAvailable(readText)): number {
  // Limits of a group and of those it lies in; "max", or in version 1 a number near 2^63, is none.
  const left = [
    ...leftIn('memory.max', 'memory.current', '', readText),
    ...leftIn('memory.limit_in_bytes', 'memory.usage_in_bytes', 'memory', readText),
  ];
  return Math.max(0, Math.min(free, ...left));
}

function leftIn(limitFile: string, usedFile: string, controller: string, readText: ReadText): number[] {
  const limits = controlGroupTexts(limitFile, controller, readText);
  const used = controlGroupTexts(usedFile, controller, readText);
  return limits.flatMap((limit, i) => {
    const bytes = /^\d+$/.test(limit) ? Number(limit) : Number.POSITIVE_INFINITY;
    return bytes < 2 ** 60 ? [bytes - Number(used[i] ?? 0)] : [];
  });
}

/** `MemAvailable` counts what the page cache would give back; `os.freemem` does not everywhere. */
function machineAvailable(readText: ReadText): number {
  try {
    const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(readText('/proc/meminfo'))?.[1];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // Not Linux.
  }
  return freemem();
}
