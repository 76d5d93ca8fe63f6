import { bug, type TrawlError } from '../../src/base/errors.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { isOfQuery, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { QueryAnswer, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import type { Candidate } from './candidate.ts';
import { passageFields } from './find-positives.ts';

export interface CandidateSearch {
  /** How candidates are found. The filter holds for candidates, not for positives. */
  readonly ranking: Pick<RetrieveCall, 'mode' | 'filter' | 'bm25' | 'bm25Order' | 'hybrid' | 'template'>;
  /** Length of the raw list. */
  readonly depth: number;
  /** Whether the BM25 list is searched beside the dense one. */
  readonly alsoBm25: boolean;
}

export type SearchedQuery =
  | {
      readonly ok: true;
      /** The text that was embedded, without the prefix. */
      readonly text: string;
      /** Whether the token limit cut the query itself. */
      readonly isCut: boolean;
      /** The raw list, best first; with `alsoBm25` both lists, by rank, of equal ranks the dense one first. */
      readonly candidates: readonly Candidate[];
    }
  | { readonly ok: false; readonly error: TrawlError };

/** The mode in which scores are computed. */
export function scoringMode(retriever: SearchSource, { ranking }: CandidateSearch): SearchMode {
  return ranking.mode ?? retriever.info.modes[0]!;
}

/**
 * Searches for the candidates of some queries. If a query fails because of its own text (`isOfQuery`), its result is the error.
 *
 * @throws SearchFailure for any other error of a query, because it may also affect queries that could be searched.
 */
export async function searchCandidates(
  retriever: SearchSource,
  inputs: readonly EncoderInput[],
  search: CandidateSearch,
  signal?: AbortSignal,
): Promise<readonly SearchedQuery[]> {
  const { ranking, depth, alsoBm25 } = search;
  const call = { queries: inputs, k: depth, signal };
  const { outcomes } = await retriever.retrieve({ ...call, ...ranking });
  checkOutcomes(outcomes);
  const prefix = scoringMode(retriever, search) === 'bm25' ? '' : (retriever.info.model?.prefixes.query ?? '');
  const searched = outcomes.map(
    (outcome): SearchedQuery => (outcome.ok ? searchedQuery(outcome, prefix) : { ok: false, error: outcome.error }),
  );
  if (!alsoBm25) return searched;
  const { filter, template } = ranking;
  const words = await retriever.retrieve({
    ...call,
    mode: 'bm25',
    filter,
    template,
  });
  checkOutcomes(words.outcomes);
  const merged = searched.map((dense, i): SearchedQuery => {
    const outcome = words.outcomes[i]!;
    if (!dense.ok || !outcome.ok) return outcome.ok ? dense : { ok: false, error: outcome.error };
    return { ...dense, candidates: mergedLists(dense.candidates, candidatesOf(outcome)) };
  });
  return withScores(retriever, merged, signal);
}

function checkOutcomes(outcomes: readonly QueryOutcome[]): void {
  for (const [i, outcome] of outcomes.entries()) {
    if (!outcome.ok && !isOfQuery(outcome.error)) throw new SearchFailure(outcome.error, i);
  }
}

function searchedQuery(answer: QueryAnswer, prefix: string): SearchedQuery {
  const { text, cut } = answer;
  return {
    ok: true,
    text: text.startsWith(prefix) ? text.slice(prefix.length) : text,
    isCut: cut === 'tail' || cut === 'question-and-tail',
    candidates: candidatesOf(answer),
  };
}

function candidatesOf({ hits }: QueryAnswer): Candidate[] {
  return hits.map(({ row, score, document }, i) => ({ ...passageFields(document, row), rank: i + 1, score }));
}

/** A passage in both lists keeps its rank in the dense list. The scores of the BM25 list are on another scale, so they become null. */
function mergedLists(dense: readonly Candidate[], words: readonly Candidate[]): readonly Candidate[] {
  const rows = new Set(dense.map(({ row }) => row));
  const others = words.filter(({ row }) => !rows.has(row)).map((candidate) => ({ ...candidate, score: null }));
  // The sort is stable: of equal ranks, the dense one stays first.
  return [...dense, ...others].sort((a, b) => a.rank - b.rank);
}

/** Gives the candidates that only BM25 found their dense scores. */
async function withScores(
  retriever: SearchSource,
  searched: readonly SearchedQuery[],
  signal?: AbortSignal,
): Promise<readonly SearchedQuery[]> {
  const unscored = searched.map((query) =>
    query.ok ? query.candidates.filter(({ score }) => score === null).map(({ row }) => row) : [],
  );
  const scores = await scoreRows(
    retriever,
    searched.map((query, i) => ({ text: query.ok ? query.text : '', rows: unscored[i]! })),
    { mode: 'dense' },
    signal,
  );
  return searched.map((query, i) => {
    if (!query.ok) return query;
    const candidates = query.candidates.map((candidate) =>
      candidate.score === null ? { ...candidate, score: scores[i]!.get(candidate.row) ?? null } : candidate,
    );
    return { ...query, candidates };
  });
}

/**
 * Scores of given rows for each query, as a search would score them. Queries without rows are not sent.
 *
 * @throws SearchFailure the error of a query.
 */
export async function scoreRows(
  retriever: SearchSource,
  queries: readonly { readonly text: string; readonly rows: readonly number[] }[],
  { mode, bm25 }: { readonly mode: 'dense' | 'bm25'; readonly bm25?: RetrieveCall['bm25'] },
  signal?: AbortSignal,
): Promise<readonly ReadonlyMap<number, number>[]> {
  const asked = queries.filter(({ rows }) => rows.length > 0);
  if (asked.length === 0) return queries.map(() => new Map());
  const { outcomes } = await retriever.score({
    // The composed text is embedded as question and query are, and needs no template.
    queries: asked.map(({ text, rows }) => ({ query: text, rows })),
    mode,
    maxRank: 0,
    bm25,
    signal,
  });
  let next = 0;
  return queries.map(({ rows }, i) => {
    if (rows.length === 0) return new Map();
    const outcome = outcomes[next++];
    if (outcome === undefined) throw bug('a query has no scores');
    if (!outcome.ok) throw new SearchFailure(outcome.error, i);
    return new Map(rows.map((row, i) => [row, outcome.scores[i]!.score]));
  });
}
