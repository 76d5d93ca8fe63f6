import type { MachinePeaks } from '../all/all-result.ts';

/** Below this share of the threads' number, each thread did not have a core for itself. */
const WHOLE_CORES = 0.9;

/** How much faster all threads multiply than one; empty if it was not measured. */
export function threadsInWords({ threads, speedupOfThreads }: MachinePeaks): string[] {
  if (speedupOfThreads === undefined) return [];
  const shared =
    speedupOfThreads < WHOLE_CORES * threads ? ': the processors share cores, or other programs used them' : '';
  return [`${speedupOfThreads.toFixed(1)} times as many with ${threads} threads as with one${shared}`];
}
