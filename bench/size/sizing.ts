/** What a search costs, measured on a machine. */
export interface MeasuredCost {
  readonly cores: number;
  /** Bytes that every search reads in full. */
  readonly prefilterBytes: number;
  readonly searches: readonly { readonly queries: number; readonly searchMs: number }[];
}

/** A machine for which times are computed. */
export interface ComputedMachine {
  readonly cores: number;
  /** Bytes a second that its cores together read from memory. */
  readonly readBytesPerS: number;
}

export interface ComputedSearch {
  readonly queries: number;
  readonly ms: number;
  readonly queriesPerS: number;
  readonly limit: 'memory' | 'processor';
}

/**
 * Times of searches on another machine: the longer of the measured time divided by the multiple of the cores, and the time in which the
 * prefilter is read once at its bandwidth. For the same cores at the same speed with all that a search reads in memory.
 */
export function computedSearches(measured: MeasuredCost, { cores, readBytesPerS }: ComputedMachine): ComputedSearch[] {
  return measured.searches.map(({ queries, searchMs }) => {
    const processorMs = (searchMs * measured.cores) / cores;
    const memoryMs = (measured.prefilterBytes / readBytesPerS) * 1000;
    const ms = Math.max(processorMs, memoryMs);
    return { queries, ms, queriesPerS: queries / (ms / 1000), limit: memoryMs > processorMs ? 'memory' : 'processor' };
  });
}
