import type { SearchCost, SpeedTrial, TriedQueries } from './speed-trial.ts';

/** The rows of an index, by how searches read them. */
export interface SearchedRows {
  /** Rows of shards with a prefilter, and the bytes of their prefilters. */
  readonly prefiltered: { readonly rows: number; readonly bytes: number };
  /** Rows of shards without one, and the bytes of their codes. */
  readonly coded: { readonly rows: number; readonly bytes: number };
}

export interface ExpectedSearch {
  readonly queries: TriedQueries;
  readonly ms: number;
  readonly queriesPerS: number;
  /** What limits the search. */
  readonly limit: 'memory' | 'processor';
}

/**
 * The expected time of searches over rows that are in memory: of each part the longer of the time in which the processor scans it, and the
 * time in which its bytes are read once; and the fixed time of a search once. Parts without a cost in the trial count as codes.
 */
export function expectedSearch(trial: SpeedTrial, { prefiltered, coded }: SearchedRows): ExpectedSearch[] {
  return trial.codes.map((codes, i) => {
    const prefilter = trial.prefilter?.[i] ?? codes;
    const parts = [partMs(trial, prefilter, prefiltered), partMs(trial, codes, coded)];
    const fixedMs = prefiltered.rows > 0 ? prefilter.fixedMs : codes.fixedMs;
    const ms = fixedMs + parts.reduce((sum, part) => sum + Math.max(part.processorMs, part.memoryMs), 0);
    const total = (of: 'processorMs' | 'memoryMs'): number => parts.reduce((sum, part) => sum + part[of], 0);
    return {
      queries: codes.queries,
      ms,
      queriesPerS: codes.queries / (ms / 1000),
      limit: total('memoryMs') > total('processorMs') ? 'memory' : 'processor',
    };
  });
}

function partMs(
  { readBytesPerS }: SpeedTrial,
  { msPerRow }: SearchCost,
  { rows, bytes }: { readonly rows: number; readonly bytes: number },
): { processorMs: number; memoryMs: number } {
  return { processorMs: rows * msPerRow, memoryMs: (bytes / readBytesPerS) * 1000 };
}

/**
 * The queries a second of a server whose encoder and engine share the same cores, at `queries` queries a batch. Larger than the truth where
 * the HTTP layer or reading passages takes part of the cores.
 */
export function combinedRate(encodedPerS: number, searchedPerS: number): number {
  return 1 / (1 / encodedPerS + 1 / searchedPerS);
}
