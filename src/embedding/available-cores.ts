import { availableParallelism } from 'node:os';
import { controlGroupTexts, type ReadText, readTextFile } from './control-group.ts';

/**
 * Cores this process may use, at least 1: the scheduler's affinity (cpusets and `taskset` show there), or the control
 * group's quota where that is less. A container of 2 cores on a host of 64 has a quota, and 64 workers there would only
 * wait for each other.
 */
export function availableCores(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.ceil(cgroupQuotaCores() ?? Number.POSITIVE_INFINITY)));
}

/** The CPU quota in cores, the tightest of the groups this process lies in; null where there is none or it cannot be told. */
export function cgroupQuotaCores(readText: ReadText = readTextFile): number | null {
  // Version 2: "<quota µs or max> <period µs>". Version 1: two files, quota -1 where there is none.
  const periods = controlGroupTexts('cpu.cfs_period_us', 'cpu', readText);
  const quotas = [
    ...controlGroupTexts('cpu.max', '', readText).map((text) => text.split(/\s+/)),
    ...controlGroupTexts('cpu.cfs_quota_us', 'cpu', readText).map((quota, i) => [quota, periods[i]]),
  ].flatMap(([quota, period]) => cores(quota, period));
  return quotas.length === 0 ? null : Math.min(...quotas);
}

function cores(quotaUs: string | undefined, periodUs: string | undefined): number[] {
  const value = quotaUs === '' ? Number.NaN : Number(quotaUs) / Number(periodUs);
  return Number.isFinite(value) && value > 0 ? [value] : [];
}
