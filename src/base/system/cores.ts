import { availableParallelism } from 'node:os';
import { controlGroupFolders, type ReadText, readTextFile, textOrEmpty } from './control-group.ts';

/**
 * Cores that this process may use, at least 1: the cores in its affinity mask (set by cpusets and `taskset`), or the control
 * group's CPU quota, rounded up, if that is less. The default size of every thread pool: in a container limited to 8 of 128
 * cores, 128 threads would be throttled.
 */
export function availableCores(readText: ReadText = readTextFile): number {
  const quota = quotaCores(readText) ?? Number.POSITIVE_INFINITY;
  return Math.max(1, Math.min(affinityCores(readText) ?? availableParallelism(), Math.ceil(quota)));
}

/** The tightest CPU quota of this process's control groups, in cores (may be fractional); null if there is none. */
function quotaCores(readText: ReadText): number | null {
  // Version 2: "<quota µs, or max> <period µs>". Version 1: two files, and −1 for no quota.
  const quotas = [
    ...controlGroupFolders('v2', readText).map((folder) => textOrEmpty(`${folder}/cpu.max`, readText).split(/\s+/)),
    ...controlGroupFolders('cpu', readText).map((folder) => [
      textOrEmpty(`${folder}/cpu.cfs_quota_us`, readText),
      textOrEmpty(`${folder}/cpu.cfs_period_us`, readText),
    ]),
  ].flatMap(([quota, period]) => coresOf(quota, period));
  return quotas.length === 0 ? null : Math.min(...quotas);
}

function coresOf(quotaUs: string | undefined, periodUs: string | undefined): number[] {
  const cores = quotaUs === '' ? Number.NaN : Number(quotaUs) / Number(periodUs);
  return Number.isFinite(cores) && cores > 0 ? [cores] : [];
}

/**
 * Number of online cores in the affinity mask; null outside Linux. Not `availableParallelism`, which from Node.js 22.10 scales
 * the quota by the group's CPU weight and returns 1 in a container with a small request and a large limit.
 */
function affinityCores(readText: ReadText): number | null {
  const [, allowed] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(textOrEmpty('/proc/self/status', readText)) ?? [];
  const online = textOrEmpty('/sys/devices/system/cpu/online', readText);
  if (allowed === undefined || online === '') return null;
  // The mask also lists cores that are not present.
  const onlineCores = new Set(coreNumbers(online));
  return coreNumbers(allowed).filter((core) => onlineCores.has(core)).length;
}

/** '0-2,8' → [0, 1, 2, 8] */
function coreNumbers(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number) as [number, number?];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
