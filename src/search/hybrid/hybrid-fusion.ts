import type { HybridSettings } from './hybrid-settings.ts';

/** A row's place in the list of one side. */
export interface HybridPlace {
  /** From 1. */
  readonly rank: number;
  /** As a search in that mode reports it: a float32, larger is better. */
  readonly score: number;
}

/** Where the two lists have a row; null: not among their first `depth` rows. */
export interface HybridPlaces {
  readonly dense: HybridPlace | null;
  readonly bm25: HybridPlace | null;
}

export interface FusedRow {
  readonly row: number;
  /** A float32; larger is better. */
  readonly score: number;
  readonly places: HybridPlaces;
}

/** The exact list of one side, best first, at most `depth` rows. Scores are in float32. */
export interface SideList {
  readonly rows: Float64Array;
  readonly scores: Float32Array;
}

/**
 * Fuses the two lists of a query. The score of a row is the sum of a dense and a BM25 part, computed in float64 and rounded once to
 * float32; equal rounded scores are ordered by the lower row. The part of a list that does not have the row is 0. Otherwise it is
 *
 * - `rrf`: weight / (rrfK + rank), with ranks from 1;
 * - `weighted`: weight · (score − floor) / (best − floor), where `best` is the list's first score and `floor` its last one, or 1 for
 *   `(…)/(…)` if the two are equal. No row outside a list scores above its floor. For a BM25 list of fewer than `depth` rows, the
 *   floor is 0, the score of a row without a word of the query.
 *
 * The result depends on the two lists and the settings alone. Asking for fewer rows gives a prefix.
 */
export function fuseLists(dense: SideList, bm25: SideList, settings: HybridSettings, k: number): FusedRow[] {
  const placesByRow = new Map<number, { -readonly [side in keyof HybridPlaces]: HybridPlaces[side] }>();
  for (const [side, { rows, scores }] of Object.entries({ dense, bm25 }) as [keyof HybridPlaces, SideList][]) {
    for (const [i, row] of rows.entries()) {
      const places = placesByRow.get(row) ?? { dense: null, bm25: null };
      // Adding 0 turns −0 into 0.
      places[side] = { rank: i + 1, score: scores[i]! + 0 };
      placesByRow.set(row, places);
    }
  }
  const ranges = rangesOf(dense, bm25, settings);
  const part = (places: HybridPlaces, side: keyof HybridPlaces): number =>
    places[side] === null ? 0 : partOf(places[side], side, ranges, settings);
  return Array.from(placesByRow, ([row, places]) => {
    return { row, score: Math.fround(part(places, 'dense') + part(places, 'bm25')), places };
  })
    .sort((a, b) => b.score - a.score || a.row - b.row)
    .slice(0, k);
}

/** The scores between which a list is scaled; null for an empty list. */
interface ListRange {
  readonly best: number;
  readonly floor: number;
}

export interface ListRanges {
  readonly dense: ListRange | null;
  readonly bm25: ListRange | null;
}

export function rangesOf(dense: SideList, bm25: SideList, { depth }: Pick<HybridSettings, 'depth'>): ListRanges {
  const rangeOf = ({ rows, scores }: SideList, floor: number | undefined): ListRange | null =>
    rows.length === 0 ? null : { best: scores[0]! + 0, floor: (floor ?? 0) + 0 };
  return {
    dense: rangeOf(dense, dense.scores.at(-1)),
    bm25: rangeOf(bm25, bm25.rows.length < depth ? 0 : bm25.scores.at(-1)),
  };
}

/** What a list adds to the score of a row at this place, before the sum is rounded. */
export function partOf(
  place: HybridPlace,
  side: keyof ListRanges,
  ranges: ListRanges,
  { fusion, rrfK, denseWeight, bm25Weight }: HybridSettings,
): number {
  const weight = side === 'dense' ? denseWeight : bm25Weight;
  if (fusion === 'rrf') return weight / (rrfK + place.rank);
  const { best, floor } = ranges[side] ?? { best: 0, floor: 0 };
  return weight * (best === floor ? 1 : (place.score - floor) / (best - floor));
}
