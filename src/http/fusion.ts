import { type DocumentFields, documentFields } from '../passages/document-fields.ts';
import type { Hit, QueryOutcome } from '../retrieval/retriever.ts';
import type { EventLoopTurn } from './event-loop-turn.ts';

export const FUSIONS = ['none', 'rrf', 'max'] as const;
export type Fusion = (typeof FUSIONS)[number];

export const DEDUPLICATIONS = ['none', 'passage', 'title'] as const;
export type Deduplication = (typeof DEDUPLICATIONS)[number];

/** The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), which FlashRAG uses too. */
const RRF_K = 60;

/** Which hits of a query stay. */
export interface Selection {
  /** Hits of a list in the reply. */
  readonly k: number;
  readonly minScore: number | null;
  /** Ids as text. */
  readonly excluded: ReadonlySet<string>;
  readonly deduplicate: Deduplication;
}

export interface Candidate {
  readonly hit: Hit;
  readonly fields: DocumentFields;
}

export interface Fused {
  /** Of the passages that count as one, that with the best score. */
  readonly best: Candidate;
  /** What the list is ordered by; larger is better. */
  readonly score: number;
  /** Where it was found, best score first; ranks from 1, after what was left out. */
  readonly from: readonly { readonly query: number; readonly rank: number; readonly score: number }[];
}

/** What stays of a query's hits, best first. */
export interface Selected {
  readonly candidates: readonly Candidate[];
  /** False where further hits of the query, if it has some, would be looked at. */
  readonly full: boolean;
}

/**
 * The hits of each query that stay; none of a query that failed. With `acrossLists` what counts as one stays in the first
 * list that has it, and a list has at most `length` of them; else it is in every list once, and `length` hits that are not
 * left out are looked at.
 */
export async function select(
  outcomes: readonly QueryOutcome[],
  { minScore, excluded, deduplicate }: Selection,
  { length, acrossLists }: { readonly length: number; readonly acrossLists: boolean },
  turn: EventLoopTurn,
): Promise<readonly Selected[]> {
  let seen = new Set<unknown>();
  const lists: Selected[] = [];
  for (const outcome of outcomes) {
    const candidates: Candidate[] = [];
    let looked = 0;
    let full = !outcome.ok;
    if (!acrossLists) seen = new Set();
    for (const hit of outcome.ok ? outcome.hits : []) {
      full = (acrossLists ? candidates.length : looked) === length || (minScore !== null && hit.score < minScore);
      if (full) break;
      const candidate = { hit, fields: documentFields(hit.document) };
      if (candidate.fields.id !== undefined && excluded.has(candidate.fields.id)) continue;
      looked++;
      const key = keyOf(candidate, deduplicate);
      if (deduplicate !== 'none' && seen.has(key)) continue;
      seen.add(key);
      candidates.push(candidate);
    }
    lists.push({ candidates, full: full || (acrossLists ? candidates.length : looked) === length });
    if (turn.isOver) await turn.next();
  }
  return lists;
}

/** One list of at most `k` from several. Equal scores are ordered by the better hit, then by the lower row. */
export async function fuse(
  lists: readonly Selected[],
  fusion: Exclude<Fusion, 'none'>,
  { k, deduplicate }: Selection,
  turn: EventLoopTurn,
): Promise<Fused[]> {
  const groups = new Map<unknown, { best: Candidate; rrf: number; from: Fused['from'][number][] }>();
  for (const [query, { candidates }] of lists.entries()) {
    for (const [position, candidate] of candidates.entries()) {
      const rank = position + 1;
      const key = keyOf(candidate, deduplicate);
      const group = groups.get(key) ?? { best: candidate, rrf: 0, from: [] };
      if (isBetter(candidate.hit, group.best.hit)) group.best = candidate;
      group.rrf += 1 / (RRF_K + rank);
      group.from.push({ query, rank, score: candidate.hit.score });
      groups.set(key, group);
    }
    if (turn.isOver) await turn.next();
  }
  return [...groups.values()]
    .map(({ best, rrf, from }) => ({ best, score: fusion === 'rrf' ? rrf : best.hit.score, from }))
    .sort((a, b) => b.score - a.score || (isBetter(a.best.hit, b.best.hit) ? -1 : 1))
    .slice(0, k)
    .map(({ from, ...fused }) => ({ ...fused, from: from.sort((a, b) => b.score - a.score || a.query - b.query) }));
}

function isBetter(a: Hit, b: Hit): boolean {
  return a.score > b.score || (a.score === b.score && a.row < b.row);
}

/** Passages with one key count as one. A passage without a title is like no other. */
function keyOf({ hit, fields }: Candidate, deduplicate: Deduplication): unknown {
  return deduplicate === 'title' && fields.title !== undefined ? fields.title : hit.row;
}
