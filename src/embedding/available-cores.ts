import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/**
 * Cores this process may use, at least 1: the scheduler's affinity, or the control group's quota where that is less. A
 * container of 2 cores on a host of 64 has a quota, and 64 workers there would only wait for each other.
 */
export function availableCores(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.ceil(cgroupQuotaCores() ?? Number.POSITIVE_INFINITY)));
}

/** The CPU quota in cores, null where there is none or it cannot be told. `readText` is replaceable for tests. */
export function cgroupQuotaCores(readText: (path: string) => string = readTextFile): number | null {
  // Version 2: "<quota µs or max> <period µs>".
  const [quota, period] = tryRead(readText, '/sys/fs/cgroup/cpu.max').split(/\s+/);
  if (quota !== undefined && quota !== '') return cores(quota, period);
  // Version 1: two files, quota -1 where there is none.
  return cores(
    tryRead(readText, '/sys/fs/cgroup/cpu/cpu.cfs_quota_us'),
    tryRead(readText, '/sys/fs/cgroup/cpu/cpu.cfs_period_us'),
  );
}

function cores(quotaUs: string, periodUs: string | undefined): number | null {
  const value = Number(quotaUs) / Number(periodUs);
  return Number.isFinite(value) && value > 0 ? value : null;
}

function tryRead(readText: (path: string) => string, path: string): string {
  try {
    return readText(path).trim();
  } catch {
    return '';
  }
}

function readTextFile(path: string): string {
  return readFileSync(path, 'utf8');
}
