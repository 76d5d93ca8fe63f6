import { TopK } from '../../engine/top-k.ts';
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

/** The first rows of the fused list, and the scale of each list, from which the parts of a score follow. */
export interface FusedList {
  readonly rows: readonly FusedRow[];
  readonly scales: ListScales;
}

/**
 * Fuses the two lists of a query. The score of a row is the sum of a dense and a BM25 part, computed in float64 and rounded once to
 * float32; equal rounded scores are ordered by the lower row. The part of a list that does not have the row is 0. Otherwise it is
 *
 * - `rrf`: weight / (rrfK + rank), with ranks from 1;
 * - `weighted`: weight · (score − floor) / deviation, where `floor` is the list's last score and `deviation` the standard deviation of
 *   its scores, or weight if that is 0. No row outside a list scores above its floor. For a BM25 list of fewer than `depth` rows, the
 *   floor is 0, the score of a row without a word of the query, and counts as one more score of the list.
 *
 * The result depends on the two lists and the settings alone. Asking for fewer rows gives a prefix.
 */
export function fuseLists(dense: SideList, bm25: SideList, settings: HybridSettings, k: number): FusedList {
  const scales = scalesOf(dense, bm25, settings);
  const [inDense, inBm25] = [placesIn(dense), placesIn(bm25)];
  const placesOf = (row: number): HybridPlaces => ({ dense: inDense(row), bm25: inBm25(row) });
  const part = (place: HybridPlace | null, side: keyof HybridPlaces): number =>
    place === null ? 0 : partOf(place, side, scales, settings);
  const best = new TopK(k);
  const offer = (row: number, places: HybridPlaces): void =>
    best.offer(row, Math.fround(part(places.dense, 'dense') + part(places.bm25, 'bm25')));
  for (const row of dense.rows) offer(row, placesOf(row));
  for (const row of bm25.rows) {
    const places = placesOf(row);
    if (places.dense === null) offer(row, places);
  }
  const { rows, scores } = best.sorted();
  return { rows: rows.map((row, i) => ({ row, score: scores[i]!, places: placesOf(row) })), scales };
}

function placesIn({ rows, scores }: SideList): (row: number) => HybridPlace | null {
  const indexes = new Map<number, number>();
  for (let i = 0; i < rows.length; i++) indexes.set(rows[i]!, i);
  return (row) => {
    const i = indexes.get(row);
    // Adding 0 turns −0 into 0.
    return i === undefined ? null : { rank: i + 1, score: scores[i]! + 0 };
  };
}

/** The scale of a list's scores; null for an empty list. */
interface ListScale {
  readonly floor: number;
  readonly deviation: number;
}

export interface ListScales {
  readonly dense: ListScale | null;
  readonly bm25: ListScale | null;
}

function scalesOf(dense: SideList, bm25: SideList, { depth }: Pick<HybridSettings, 'depth'>): ListScales {
  return {
    dense: scaleOf(dense.scores),
    bm25: scaleOf(
      bm25.rows.length === 0 || bm25.rows.length === depth ? bm25.scores : Float32Array.from([...bm25.scores, 0]),
    ),
  };
}

/** Of scores that are sorted, best first. */
function scaleOf(scores: Float32Array): ListScale | null {
  const floor = scores.at(-1);
  if (floor === undefined) return null;
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const variance = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length;
  return { floor: floor + 0, deviation: floor === scores[0] ? 0 : Math.sqrt(variance) };
}

/** What a list adds to the score of a row at this place, before the sum is rounded. */
export function partOf(
  place: HybridPlace,
  side: keyof ListScales,
  scales: ListScales,
  { fusion, rrfK, denseWeight, bm25Weight }: HybridSettings,
): number {
  const weight = side === 'dense' ? denseWeight : bm25Weight;
  if (fusion === 'rrf') return weight / (rrfK + place.rank);
  const { floor, deviation } = scales[side] ?? { floor: 0, deviation: 0 };
  return weight * (deviation === 0 ? 1 : (place.score - floor) / deviation);
}
