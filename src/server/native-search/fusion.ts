import type { TimeSlice } from '../../base/time-slice.ts';
import { type DocumentFields, documentFields } from '../../index/passages/document-fields.ts';
import { byScore, type Hit, type QueryOutcome, type ShortReason } from '../../search/calls/query-outcome.ts';
import { documentKey } from '../documents/document-lookup.ts';

export const FUSIONS = ['none', 'rrf', 'max'] as const;
export type Fusion = (typeof FUSIONS)[number];

export const DEDUPLICATIONS = ['none', 'passage', 'title', 'document'] as const;
export type Deduplication = (typeof DEDUPLICATIONS)[number];

/** The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009); FlashRAG uses the same. */
const RRF_K = 60;

/** Which hits of a query are kept. */
export interface Selection {
  /** Longest list in the reply. */
  readonly k: number;
  readonly minScore: number | null;
  readonly deduplicate: Deduplication;
}

export interface Candidate {
  readonly hit: Hit;
  readonly fields: DocumentFields;
}

export interface Fused {
  /** The best-scored of the hits that deduplication merged. */
  readonly best: Candidate;
  /** The query that found `best`. With equal scores it need not be the first of `from`. */
  readonly query: number;
  /** The fused score, by which the list is ordered; larger is better. */
  readonly score: number;
  /** The queries that found the passage, best score first. Ranks start at 1 and are counted after selection. */
  readonly from: readonly { readonly query: number; readonly rank: number; readonly score: number }[];
}

/** The selected hits of one query, best first. */
export interface Selected {
  readonly candidates: readonly Candidate[];
  /** False if more hits of this query could still be added. */
  readonly full: boolean;
  /** Why hits that were found are not selected although the list is short. */
  readonly short?: ShortReason | undefined;
}

/**
 * Selects hits of each query; a failed query has none. With `acrossLists`, a duplicate is kept only in the first list that has it,
 * and each list gets up to `length` hits. Otherwise duplicates are removed within each list, among the first `length` hits.
 */
export async function select(
  outcomes: readonly QueryOutcome[],
  { minScore, deduplicate }: Selection,
  { length, acrossLists }: { readonly length: number; readonly acrossLists: boolean },
  slice: TimeSlice,
): Promise<readonly Selected[]> {
  let seen = new Set<unknown>();
  const lists: Selected[] = [];
  for (const outcome of outcomes) {
    if (!acrossLists) seen = new Set();
    const candidates: Candidate[] = [];
    let left = outcome.ok ? length : 0;
    let short: ShortReason | undefined;
    for (const hit of outcome.ok ? outcome.hits : []) {
      if (left === 0) break;
      // The further hits have lower scores.
      if (minScore !== null && hit.score < minScore) {
        short = 'minScore';
        left = 0;
        break;
      }
      const candidate = { hit, fields: documentFields(hit.document) };
      const key = duplicateKey(candidate, deduplicate);
      const isDuplicate = deduplicate !== 'none' && seen.has(key);
      seen.add(key);
      if (isDuplicate) short = 'duplicates';
      else candidates.push(candidate);
      if (!isDuplicate || !acrossLists) left--;
    }
    lists.push({ candidates, full: left === 0, short: candidates.length < length ? short : undefined });
    if (slice.isOver) await slice.yield();
  }
  return lists;
}

/** Merges lists into one of at most `k`. Equal fused scores are ordered by the better hit, then by the lower row. */
export async function fuse(
  lists: readonly Selected[],
  fusion: Exclude<Fusion, 'none'>,
  { k, deduplicate }: Selection,
  slice: TimeSlice,
): Promise<Fused[]> {
  const groups = new Map<unknown, { best: Candidate; query: number; rrf: number; from: Fused['from'][number][] }>();
  for (const [query, { candidates }] of lists.entries()) {
    for (const [position, candidate] of candidates.entries()) {
      const rank = position + 1;
      const key = duplicateKey(candidate, deduplicate);
      const group = groups.get(key) ?? { best: candidate, query, rrf: 0, from: [] };
      if (isBetter(candidate.hit, group.best.hit)) Object.assign(group, { best: candidate, query });
      group.rrf += 1 / (RRF_K + rank);
      group.from.push({ query, rank, score: candidate.hit.score });
      groups.set(key, group);
    }
    if (slice.isOver) await slice.yield();
  }
  return (
    [...groups.values()]
      .map(({ rrf, ...group }) => ({ ...group, score: fusion === 'rrf' ? rrf : group.best.hit.score }))
      // Rounding keeps the order of scores, so equal best scores are in the order of the scores before rounding.
      .sort((a, b) => b.score - a.score || (isBetter(a.best.hit, b.best.hit) ? -1 : 1))
      .slice(0, k)
      .map(({ from, ...fused }) => ({ ...fused, from: from.sort((a, b) => b.score - a.score || a.query - b.query) }))
  );
}

function isBetter(a: Hit, b: Hit): boolean {
  return (byScore(a, b) || a.row - b.row) < 0;
}

/** Hits with equal keys are duplicates. A passage without a title has no duplicates by title. */
function duplicateKey({ hit, fields }: Candidate, deduplicate: Deduplication): unknown {
  if (deduplicate === 'document') return documentKey(fields, hit.row);
  return deduplicate === 'title' && fields.title !== undefined ? fields.title : hit.row;
}
