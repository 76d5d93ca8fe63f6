import { passagesById } from '../../evaluation/passages-by-id.ts';
import type { TrawlError } from '../../src/base/errors.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { isOfQuery, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { QueryAnswer, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import type { Candidate, MinedPassage } from './mined-query.ts';

const PASSAGES_PER_ID = 8;

export interface CandidateSearch {
  /** How candidates are found. The filter holds for candidates, not for positives. */
  readonly ranking: Pick<RetrieveCall, 'mode' | 'filter' | 'bm25' | 'bm25Order' | 'hybrid' | 'template'>;
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
  const searched = outcomes.map((outcome) => (outcome.ok ? searchedQuery(outcome, prefix) : outcome));
  if (!alsoBm25) return searched;
  const { filter, template } = ranking;
  const words = await retriever.retrieve({ ...call, mode: 'bm25', filter, template });
  checkOutcomes(words.outcomes);
  const merged = searched.map((dense, i): SearchedQuery => {
    const outcome = words.outcomes[i]!;
    if (!outcome.ok) return outcome;
    return dense.ok ? { ...dense, candidates: mergedLists(dense.candidates, candidatesOf(outcome)) } : dense;
  });
  const lists = merged.map((query) => (query.ok ? { text: query.text, passages: query.candidates } : NO_PASSAGES));
  const scored = await withMissingScores(retriever, lists, { mode: 'dense', signal });
  return merged.map((query, i) => (query.ok ? { ...query, candidates: scored[i]! } : query));
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

export const NO_PASSAGES = { text: '', passages: [] } as const;

/**
 * Gives each passage without a score the score that a search for the text would give it.
 *
 * @throws SearchFailure the error of a query.
 */
export async function withMissingScores<Passage extends MinedPassage>(
  retriever: SearchSource,
  queries: readonly { readonly text: string; readonly passages: readonly Passage[] }[],
  { mode, bm25, signal }: Pick<RetrieveCall, 'bm25' | 'signal'> & { readonly mode: 'dense' | 'bm25' },
): Promise<readonly (readonly Passage[])[]> {
  const rows = queries.map(({ passages }) => passages.filter(({ score }) => score === null).map(({ row }) => row));
  // The composed text is embedded as question and query are, and needs no template.
  const asked = queries.map(({ text }, i) => ({ query: text, rows: rows[i]! })).filter(({ rows }) => rows.length > 0);
  if (asked.length === 0) return queries.map(({ passages }) => passages);
  const { outcomes } = await retriever.score({ queries: asked, mode, maxRank: 0, bm25, signal });
  let next = 0;
  return queries.map(({ passages }, i) => {
    if (rows[i]!.length === 0) return passages;
    const outcome = outcomes[next++]!;
    if (!outcome.ok) throw new SearchFailure(outcome.error, i);
    const scores = new Map(rows[i]!.map((row, at) => [row, outcome.scores[at]!.score]));
    return passages.map((passage) => ({ ...passage, score: passage.score ?? scores.get(passage.row) ?? null }));
  });
}

/**
 * The passages of each id, from the whole index; an unknown id has no entry. Their rank and score are null.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function findPassages(
  retriever: SearchSource,
  ids: Iterable<string>,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, readonly MinedPassage[]>> {
  const passages = new Map<string, readonly MinedPassage[]>();
  for await (const [id, found] of passagesById(retriever, new Set(ids), { limit: PASSAGES_PER_ID, signal })) {
    const mined = found.map(({ row, document }) => ({ ...passageFields(document, row), rank: null, score: null }));
    if (mined.length > 0) passages.set(id, mined);
  }
  return passages;
}

function passageFields(document: string, row: number): Omit<MinedPassage, 'rank' | 'score'> {
  const { id = String(row), title = '', text, contents } = documentFields(document);
  return { row, id, title, text, contents };
}
