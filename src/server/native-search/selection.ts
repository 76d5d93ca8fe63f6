import type { QueryOutcome } from '../../search/calls/query-outcome.ts';
import type { RecordedSelection } from '../recording/recorded-search.ts';
import type { RequestLimits } from '../server-config.ts';
import type { Selected, Selection } from './fusion.ts';
import type { SearchRequest } from './request.ts';

/** Which hits the request keeps. */
export function selectionOf(request: SearchRequest, limits: RequestLimits): Selection {
  return {
    k: request.k ?? limits.topk,
    minScore: request.minScore,
    excluded: new Set(request.exclude.map(String)),
    deduplicate: request.deduplicate ?? (request.fuse === 'none' ? 'none' : 'passage'),
  };
}

/** For the record: how hits are left out or merged; undefined if they are not. */
export function recordedSelection(
  { minScore, excluded, deduplicate }: Selection,
  { fuse }: SearchRequest,
): RecordedSelection | undefined {
  const selection = {
    ...(minScore === null ? {} : { minScore }),
    ...(excluded.size === 0 ? {} : { excluded: excluded.size }),
    ...(deduplicate === 'none' ? {} : { deduplicate }),
    ...(fuse === 'none' ? {} : { fuse }),
  };
  return Object.keys(selection).length === 0 ? undefined : selection;
}

/** Number of hits to consider per query, without excluded ones. */
export function wantedHits({ k, deduplicate }: Selection, request: SearchRequest): number {
  if (request.fuse === 'none' && deduplicate === 'none') return k;
  return Math.max(k, request.candidates ?? Math.max(10, 2 * k));
}

/** Largest number of hits per query that a search may go through. */
export function maxDepth(queries: number, k: number, limits: RequestLimits): number {
  return Math.max(k, Math.min(limits.maxK, Math.floor(limits.maxHits / Math.max(1, queries))));
}

/** The outcomes with the selected hits only, at most k per query. */
export function selectedOutcomes(
  outcomes: readonly QueryOutcome[],
  lists: readonly Selected[],
  k: number,
): readonly QueryOutcome[] {
  return outcomes.map((outcome, i) =>
    outcome.ok ? { ...outcome, hits: lists[i]!.candidates.slice(0, k).map(({ hit }) => hit) } : outcome,
  );
}
