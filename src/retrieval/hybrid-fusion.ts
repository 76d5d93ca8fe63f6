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

/** The exact list of one side, best first, at most `depth` rows. */
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
  const { denseWeight, bm25Weight, depth } = settings;
  const bm25Floor = bm25.rows.length < depth ? 0 : bm25.scores.at(-1)!;
  const denseParts = partsOf(dense, { weight: denseWeight, floor: dense.scores.at(-1) ?? 0, settings });
  const bm25Parts = partsOf(bm25, { weight: bm25Weight, floor: bm25Floor, settings });
  const fused: FusedRow[] = [];
  for (const [row, { place, part }] of denseParts) {
    const other = bm25Parts.get(row);
    const score = Math.fround(part + (other?.part ?? 0));
    fused.push({ row, score, places: { dense: place, bm25: other?.place ?? null } });
  }
  for (const [row, { place, part }] of bm25Parts) {
    if (!denseParts.has(row)) fused.push({ row, score: Math.fround(part), places: { dense: null, bm25: place } });
  }
  return fused.sort((a, b) => b.score - a.score || a.row - b.row).slice(0, k);
}

interface Part {
  readonly place: HybridPlace;
  readonly part: number;
}

/** What a list adds to the score of each of its rows. */
function partsOf(
  { rows, scores }: SideList,
  { weight, floor, settings }: { weight: number; floor: number; settings: HybridSettings },
): Map<number, Part> {
  const range = (scores[0] ?? 0) - floor;
  const partOf = ({ rank, score }: HybridPlace): number => {
    if (settings.fusion === 'rrf') return weight / (settings.rrfK + rank);
    return weight * (range === 0 ? 1 : (score - floor) / range);
  };
  const parts = new Map<number, Part>();
  for (const [i, row] of rows.entries()) {
    // Adding 0 turns −0 into 0.
    const place = { rank: i + 1, score: scores[i]! + 0 };
    parts.set(row, { place, part: partOf(place) });
  }
  return parts;
}
