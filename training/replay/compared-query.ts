import type { RecordedQuery } from '../records/recorded-query.ts';
import { overlapAt, type RankedList, rankBiasedOverlap } from './rank-biased-overlap.ts';
import type { TargetHit } from './replay-target.ts';

export interface ComparedQuery {
  readonly turn: number | null;
  /** Whether both lists have the same passages in the same order. */
  readonly identical: boolean;
  readonly rbo: number;
  /** Overlap at each cutoff; null where a list was asked for fewer passages, or both are empty. */
  readonly overlaps: readonly (number | null)[];
  readonly gold: ReturnType<typeof compareGold> | null;
  /** Null without golden answers, or if a recorded passage is not known any more that may have had one. */
  readonly answer: { readonly before: boolean; readonly now: boolean } | null;
}

/** Two lists whose passages have the same names. */
interface ComparableLists {
  readonly before: RankedList;
  readonly now: RankedList;
}

/**
 * Names the passages of both lists: by row where the generation is the same, else by id. Undefined if a passage has no id.
 */
export function comparableLists(
  record: RecordedQuery,
  hits: readonly TargetHit[],
  sameGeneration: boolean,
): ComparableLists | undefined {
  const scores = hits.map(({ score }) => score);
  if (sameGeneration) {
    return {
      before: { passages: record.rows.map(String), scores: record.scores },
      now: { passages: hits.map(({ row }) => String(row)), scores },
    };
  }
  const before = record.ids.filter((id) => id !== null);
  const now = hits.flatMap(({ id }) => id ?? []);
  if (before.length < record.ids.length || now.length < hits.length) return undefined;
  return { before: { passages: before, scores: record.scores }, now: { passages: now, scores } };
}

/** `k`: hits that were asked for in both searches. A cutoff beyond it is not measured. */
export function compareLists(
  { before, now }: ComparableLists,
  { cutoffs, k, p }: { readonly cutoffs: readonly number[]; readonly k: number; readonly p: number },
): Pick<ComparedQuery, 'identical' | 'rbo' | 'overlaps'> {
  return {
    identical: JSON.stringify(before.passages) === JSON.stringify(now.passages),
    rbo: rankBiasedOverlap(before, now, p),
    overlaps: cutoffs.map((cutoff) => (cutoff > k ? null : overlapAt(before.passages, now.passages, cutoff))),
  };
}

export function compareGold(
  before: readonly (string | null)[],
  now: readonly (string | null)[],
  gold: ReadonlySet<string>,
) {
  const relevant = (ids: readonly (string | null)[]): Set<string | null> =>
    new Set(ids.filter((id) => id !== null && gold.has(id)));
  const [old, found] = [relevant(before), relevant(now)];
  const gained = [...found].filter((id) => !old.has(id)).length;
  return { before: old.size, now: found.size, gained, lost: old.size - found.size + gained };
}
