import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { isOfQuery, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import { answerRule } from './answer-rule.ts';
import { hasMargin, type Sampling, type ScoreLimits, sampleNegatives, scoreReason } from './choose-negatives.ts';
import { excludeFalseNegatives } from './exclude-false-negatives.ts';
import type { Candidate, MinedPassage, MinedQuery, MiningQuery } from './mined-query.ts';
import {
  type CandidateSearch,
  findPassages,
  NO_PASSAGES,
  type SearchedQuery,
  scoringMode,
  searchCandidates,
  withMissingScores,
} from './search-candidates.ts';
import type { StoredQuery } from './work-file.ts';

const LISTS_PER_CALL = 8;

export interface BatchSettings {
  readonly search: CandidateSearch;
  /** First rank whose passage may be a negative, from 1. The last one is the depth of the search. */
  readonly rangeMin: number;
  readonly limits: ScoreLimits;
  readonly sampling: Sampling;
  readonly minNegatives: number;
  readonly nearDuplicate: number | null;
  /** Whether the reranker's scores take the place of the search's. */
  readonly rerank: boolean;
  /** Whether a query with a positive whose score is not known gets no row. */
  readonly needScores: boolean;
  readonly inputOf: (query: MiningQuery) => EncoderInput;
}

/**
 * Why a query has no row:
 * - `positive_not_found`: the index has none of its positives;
 * - `not_searchable`: the query itself cannot be searched or judged (`isOfQuery`): it is blank or too long, it has no vector, or the
 *   rerank server refuses it;
 * - `positive_without_score`: the list of a hybrid search does not have a positive, whose score is needed;
 * - `too_few_negatives`: fewer than wanted at least.
 */
export const UNMINED_REASONS = [
  'positive_not_found',
  'not_searchable',
  'positive_without_score',
  'too_few_negatives',
] as const;
type UnminedReason = (typeof UNMINED_REASONS)[number];

/** A query between the exclusions and the limits on scores. */
type PreparedQuery = ReturnType<typeof prepare>;
export type QueryOutcome = ReturnType<typeof finish>;

/** @throws SearchFailure an error that is not of a query itself; TrawlError CANCELLED. */
export async function mineBatch(
  retriever: SearchSource,
  queries: readonly StoredQuery[],
  settings: BatchSettings,
  signal?: AbortSignal,
): Promise<readonly QueryOutcome[]> {
  const ids = queries.flatMap(({ query, siblingIds }) => [...query.positiveIds, ...siblingIds]);
  const passages = await findPassages(retriever, ids, signal);
  const inputs = queries.map(({ query }) => settings.inputOf(query));
  const searched = await searchCandidates(retriever, inputs, settings.search, signal);
  const prepared = queries.map((stored, i) => prepare(stored, searched[i]!, passages, settings));
  const judged = settings.rerank
    ? await judgeCandidates(retriever, prepared, signal)
    : await withPositiveScores(retriever, prepared, settings, signal);
  return judged.map((query) => finish(query, settings));
}

function prepare(
  stored: StoredQuery,
  searched: SearchedQuery,
  passages: ReadonlyMap<string, readonly MinedPassage[]>,
  { rangeMin, nearDuplicate }: BatchSettings,
) {
  const { query, siblingIds } = stored;
  const { positiveIds } = query;
  const answers = answerRule(query.answers);
  const hits = searched.ok ? searched.candidates : [];
  const inWindow = hits.filter(({ rank }) => rank >= rangeMin);
  const { kept, dropped } = excludeFalseNegatives({
    query,
    positives: positiveIds.flatMap((id) => passages.get(id) ?? []),
    siblings: siblingIds.flatMap((id) => passages.get(id) ?? []),
    positiveIds: new Set(positiveIds),
    siblingIds: new Set(siblingIds),
    skipped: hits.filter(({ rank }) => rank < rangeMin),
    candidates: inWindow,
    answers,
    nearDuplicate,
  });
  // Of several passages with one id, the first.
  const found = positiveIds.flatMap((id) => passages.get(id)?.slice(0, 1) ?? []);
  const places = new Map(hits.map(({ row, rank, score }) => [row, { rank, score }]));
  const positives: readonly MinedPassage[] = found.map((positive) => ({ ...positive, ...places.get(positive.row) }));
  const hasAnswers = query.answers.length > answers.undecidable;
  const facts = {
    stored,
    positive: found[0],
    positivesNotFound: positiveIds.length - found.length,
    /** Positives without any of the golden answers that can be looked for. */
    positivesWithoutAnswer: hasAnswers ? found.filter(({ contents }) => !answers.matches(contents)).length : 0,
    undecidableAnswers: answers.undecidable,
    isCut: searched.ok && searched.isCut,
    candidates: inWindow.length,
    dropped,
  };
  return { facts, searched, positives, kept };
}

/** Scores the positives that the raw list does not have. Hybrid scores exist only in a list. */
async function withPositiveScores(
  retriever: SearchSource,
  queries: readonly PreparedQuery[],
  { search }: BatchSettings,
  signal?: AbortSignal,
): Promise<readonly PreparedQuery[]> {
  const mode = scoringMode(retriever, search);
  if (mode === 'hybrid') return queries;
  const lists = queries.map(({ searched, positives }) =>
    searched.ok ? { text: searched.text, passages: positives } : NO_PASSAGES,
  );
  const scored = await withMissingScores(retriever, lists, { mode, bm25: search.ranking.bm25, signal });
  return queries.map((query, i) => (query.searched.ok ? { ...query, positives: scored[i]! } : query));
}

/**
 * Replaces the scores of positives and candidates by the reranker's scores, and orders the candidates by them; equal scores stay in
 * the order of the search. The ranks of the search stay. A query that the reranker refuses gets the reranker's error.
 *
 * @throws TrawlError NOT_SUPPORTED without a reranker, RERANK_TOO_LARGE; SearchFailure for any other error of a query.
 */
async function judgeCandidates(
  retriever: SearchSource,
  queries: readonly PreparedQuery[],
  signal?: AbortSignal,
): Promise<readonly PreparedQuery[]> {
  const judged = [...queries];
  const asked = queries.flatMap(({ searched, positives, kept }, i) =>
    searched.ok && positives.length > 0
      ? [{ i, list: { query: searched.text, passages: [...positives, ...kept].map(({ contents }) => contents) } }]
      : [],
  );
  for (let start = 0; start < asked.length; start += LISTS_PER_CALL) {
    const part = asked.slice(start, start + LISTS_PER_CALL);
    const { outcomes } = await retriever.rerank({ lists: part.map(({ list }) => list), signal });
    for (const [at, outcome] of outcomes.entries()) {
      const { i } = part[at]!;
      if (outcome.ok) judged[i] = withScores(queries[i]!, outcome.scores);
      else if (isOfQuery(outcome.error)) judged[i] = { ...queries[i]!, searched: outcome };
      else throw new SearchFailure(outcome.error, i);
    }
  }
  return judged;
}

function withScores(query: PreparedQuery, scores: Float32Array): PreparedQuery {
  const positives = query.positives.map((positive, i) => ({ ...positive, score: scores[i]! }));
  const kept = query.kept.map((candidate, i) => ({ ...candidate, score: scores[positives.length + i]! }));
  // The sort is stable.
  return { ...query, positives, kept: kept.sort((a, b) => b.score - a.score) };
}

/** The outcome of a query: its negatives, or why it has no row. `left`: candidates that no rule and no limit dropped. */
function finish({ facts, searched, positives, kept }: PreparedQuery, settings: BatchSettings) {
  const { limits, sampling, minNegatives, needScores } = settings;
  const { group, query, key } = facts.stored;
  const unmined = (result: UnminedReason) => ({ ...facts, result, left: kept.length });
  if (positives.length === 0) return unmined('positive_not_found');
  if (!searched.ok) return unmined('not_searchable');
  const scores = positives.map(({ score }) => score);
  const hasScores = !scores.includes(null);
  if ((needScores || hasMargin(limits)) && !hasScores) return unmined('positive_without_score');
  const lowest = hasScores ? Math.min(...(scores as number[])) : null;
  const left: Candidate[] = [];
  const dropped = [...facts.dropped];
  for (const candidate of kept) {
    const reason = scoreReason(candidate, limits, lowest);
    if (reason === undefined) left.push(candidate);
    else dropped.push({ candidate, reason });
  }
  const negatives = sampleNegatives(left, sampling, key);
  const mined: MinedQuery = { query, group, text: searched.text, positives, negatives };
  const result: MinedQuery | UnminedReason = negatives.length < minNegatives ? 'too_few_negatives' : mined;
  return { ...facts, result, dropped, left: left.length };
}
