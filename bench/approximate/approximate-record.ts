/** An engine at one setting: how much of the exact answer it finds, how fast, in how much memory. bench/README.md defines the fields. */
export interface ApproximateRecord {
  readonly case: 'approximate';
  readonly engine: string;
  readonly version: string;
  /** Candidates that a step of a graph keeps (efSearch); null for an exact engine. */
  readonly effort: number | null;
  readonly rows: number;
  readonly dimension: number;
  readonly k: number;
  readonly queries: number;
  readonly threads: number;
  readonly recall: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly queriesPerS: number;
  /** Seconds of making the graph; null for an exact engine. */
  readonly buildSeconds: number | null;
  readonly residentBytes: number;
}

/** The share of the exact rows that are in the other list, over all queries; both `count` × `k`. */
export function recallOf(exact: ArrayLike<number>, found: ArrayLike<number>, count: number, k: number): number {
  let common = 0;
  for (let query = 0; query < count; query++) {
    const wanted = new Set<number>();
    for (let rank = 0; rank < k; rank++) wanted.add(exact[query * k + rank]!);
    const seen = new Set<number>();
    for (let rank = 0; rank < k; rank++) seen.add(found[query * k + rank]!);
    for (const row of seen) if (wanted.has(row)) common++;
  }
  return common / (count * k);
}
