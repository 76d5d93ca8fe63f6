export interface RankedList {
  /** What the passages are called in both lists, best first. Of a repeated one the first counts. */
  readonly passages: readonly string[];
  /** Larger is nearer. Neighbours with equal scores are tied. */
  readonly scores: readonly number[];
}

/** The usual persistence of web search, 0.9: the first ten ranks have 86 % of the weight. */
export const DEFAULT_PERSISTENCE = 0.9;

/**
 * Rank-biased overlap of two lists, extrapolated from what is known of them: 1 for equal lists, 0 for lists without a common passage.
 * `p`, between 0 and 1, is the chance that a reader goes on from one rank to the next: a smaller one weighs the first ranks more.
 *
 * RBO_ext of Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", ACM TOIS 28(4), 2010: equation 32, for lists of
 * unequal length, with the agreement of its section on ties, by which tied passages all stand at the first of their ranks. Corsi and
 * Urbano, "The Treatment of Ties in Rank-Biased Overlap", SIGIR 2024, call this variant RBO^w. Two empty lists are equal; an empty list
 * has nothing in common with another.
 */
export function rankBiasedOverlap(one: RankedList, other: RankedList, p: number): number {
  const lists = [tieRanks(one), tieRanks(other)].sort((a, b) => a.size - b.size);
  const [short, long] = lists as [ReadonlyMap<string, number>, ReadonlyMap<string, number>];
  if (long.size === 0) return 1;
  if (short.size === 0) return 0;
  const common = commonByDepth(short, long);
  const ofShort = countsUpTo(short.values(), long.size);
  const ofLong = countsUpTo(long.values(), long.size);
  // What the short list agrees on at its end is taken to go on below it.
  const atEnd = (2 * common[short.size]!) / (ofShort[short.size]! + ofLong[short.size]!);
  let sum = 0;
  let agreement = 0;
  for (let depth = 1; depth <= long.size; depth++) {
    const unseen = Math.max(0, depth - short.size);
    agreement = (2 * (common[depth]! + atEnd * unseen)) / (ofShort[depth]! + unseen + ofLong[depth]!);
    sum += agreement * p ** depth;
  }
  return ((1 - p) / p) * sum + agreement * p ** long.size;
}

/** Each passage with its rank, from 1; tied ones with the first rank of their tie. */
function tieRanks({ passages, scores }: RankedList): ReadonlyMap<string, number> {
  const ranks = new Map<string, number>();
  let rank = 0;
  let last = Number.NaN;
  for (const [i, passage] of passages.entries()) {
    if (ranks.has(passage)) continue;
    if (scores[i] !== last) rank = ranks.size + 1;
    last = scores[i]!;
    ranks.set(passage, rank);
  }
  return ranks;
}

/** For each depth from 0 to the length of the longer list, the number of passages that both lists have down to it. */
function commonByDepth(short: ReadonlyMap<string, number>, long: ReadonlyMap<string, number>): number[] {
  const starts = [...short].flatMap(([passage, rank]) => {
    const other = long.get(passage);
    return other === undefined ? [] : [Math.max(rank, other)];
  });
  return countsUpTo(starts, long.size);
}

/** For each depth from 0, the number of ranks that are not below it. */
function countsUpTo(ranks: Iterable<number>, depth: number): number[] {
  const counts = new Array<number>(depth + 1).fill(0);
  for (const rank of ranks) counts[rank]!++;
  for (let d = 1; d <= depth; d++) counts[d]! += counts[d - 1]!;
  return counts;
}

/**
 * The share of the first k passages that both lists have: their number, divided by k or by the length of the longer list, if that is less.
 * Null for two empty lists.
 */
export function overlapAt(one: readonly string[], other: readonly string[], k: number): number | null {
  const [a, b] = [new Set(one.slice(0, k)), new Set(other.slice(0, k))];
  const longer = Math.max(a.size, b.size);
  if (longer === 0) return null;
  let common = 0;
  for (const passage of a) if (b.has(passage)) common++;
  return common / longer;
}
