import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import { answerRule } from './answer-rule.ts';
import type { Candidate } from './candidate.ts';
import { excludeFalseNegatives } from './exclude-false-negatives.ts';
import { findPassages } from './find-positives.ts';
import { judgeCandidates } from './judge-candidates.ts';
import type { MinedPassage } from './mined-query.ts';
import type { MiningQuery } from './mining-query.ts';
import type { PreparedQuery, QueryOutcome, UnminedReason } from './query-outcome.ts';
import { type Sampling, sampleNegatives } from './sample-negatives.ts';
import { hasMargin, type ScoreLimits, scoreReason } from './score-limits.ts';
import {
  type CandidateSearch,
  type SearchedQuery,
  scoreRows,
  scoringMode,
  searchCandidates,
} from './search-candidates.ts';
import type { StoredQuery } from './work-file.ts';

export interface BatchSettings {
  readonly search: CandidateSearch;
  /** First rank whose passage may be a negative, from 1. The last one is the depth of the search. */
  readonly rangeMin: number;
  readonly limits: ScoreLimits;
  readonly sampling: Sampling;
  /** A query with fewer negatives gets no row. */
  readonly minNegatives: number;
  /** See `ExclusionInput`. */
  readonly nearDuplicate: number | null;
  /** Whether the reranker's scores take the place of the search's. */
  readonly rerank: boolean;
  /** Whether a query with a positive whose score is not known gets no row. */
  readonly needScores: boolean;
  /** What is embedded for a query. */
  readonly inputOf: (query: MiningQuery) => EncoderInput;
}

/**
 * Mines negatives for some queries. `siblingIds`: of each query, the positives of its siblings.
 *
 * @throws SearchFailure an error that is not of a query itself; TrawlError CANCELLED.
 */
export async function mineBatch(
  retriever: SearchSource,
  queries: readonly StoredQuery[],
  siblingIds: readonly (readonly string[])[],
  settings: BatchSettings,
  signal?: AbortSignal,
): Promise<readonly QueryOutcome[]> {
  const passages = await findPassages(
    retriever,
    queries.flatMap(({ query }, i) => [...query.positiveIds, ...siblingIds[i]!]),
    signal,
  );
  const inputs = queries.map(({ query }) => settings.inputOf(query));
  const searched = await searchCandidates(retriever, inputs, settings.search, signal);
  const prepared = queries.map((stored, i) => {
    const positives = stored.query.positiveIds.flatMap((id) => passages.get(id)?.slice(0, 1) ?? []);
    const ofPositives = stored.query.positiveIds.flatMap((id) => passages.get(id) ?? []);
    const siblings = siblingIds[i]!.flatMap((id) => passages.get(id) ?? []);
    return prepare(stored, searched[i]!, { positives, ofPositives, siblings, siblingIds: siblingIds[i]! }, settings);
  });
  const judged = settings.rerank
    ? await judgeCandidates(retriever, prepared, signal)
    : await withPositiveScores(retriever, prepared, settings, signal);
  return judged.map((query) => finish(query, settings));
}

interface RelevantPassages {
  /** One passage for each id. */
  readonly positives: readonly MinedPassage[];
  /** All passages of the ids. */
  readonly ofPositives: readonly MinedPassage[];
  readonly siblings: readonly MinedPassage[];
  readonly siblingIds: readonly string[];
}

function prepare(
  stored: StoredQuery,
  searched: SearchedQuery,
  { positives, ofPositives, siblings, siblingIds }: RelevantPassages,
  { rangeMin, nearDuplicate }: BatchSettings,
): PreparedQuery {
  const { query } = stored;
  const answers = answerRule(query.answers);
  const hits = searched.ok ? searched.candidates : [];
  const inWindow = hits.filter(({ rank }) => rank >= rangeMin);
  const { kept, dropped } = excludeFalseNegatives({
    query,
    positives: ofPositives,
    siblings,
    positiveIds: new Set(query.positiveIds),
    siblingIds: new Set(siblingIds),
    skipped: hits.filter(({ rank }) => rank < rangeMin),
    candidates: inWindow,
    answers,
    nearDuplicate,
  });
  const places = new Map(hits.map(({ row, rank, score }) => [row, { rank, score }]));
  const hasAnswers = query.answers.length > answers.undecidable;
  return {
    stored,
    searched,
    positives: positives.map((positive) => ({ ...positive, ...places.get(positive.row) })),
    kept,
    facts: {
      positive: positives[0],
      positivesNotFound: query.positiveIds.length - positives.length,
      positivesWithoutAnswer: hasAnswers ? positives.filter(({ contents }) => !answers.matches(contents)).length : 0,
      undecidableAnswers: answers.undecidable,
      isCut: searched.ok && searched.isCut,
      candidates: inWindow.length,
      dropped,
    },
  };
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
  const scores = await scoreRows(
    retriever,
    queries.map(({ searched, positives }) => ({
      text: searched.ok ? searched.text : '',
      rows: searched.ok ? positives.filter(({ score }) => score === null).map(({ row }) => row) : [],
    })),
    { mode, bm25: search.ranking.bm25 },
    signal,
  );
  return queries.map((query, i) => ({
    ...query,
    positives: query.positives.map((positive) => ({
      ...positive,
      score: positive.score ?? scores[i]!.get(positive.row) ?? null,
    })),
  }));
}

function finish({ stored, searched, positives, kept, facts }: PreparedQuery, settings: BatchSettings): QueryOutcome {
  const { limits, sampling, minNegatives, needScores } = settings;
  const unmined = (reason: UnminedReason): QueryOutcome => ({
    stored,
    result: { unmined: reason },
    ...facts,
    left: kept.length,
  });
  if (positives.length === 0) return unmined('positive_not_found');
  if (!searched.ok) return unmined('not_searchable');
  const scores = positives.map(({ score }) => score);
  if ((needScores || hasMargin(limits)) && scores.includes(null)) return unmined('positive_without_score');
  const lowest = scores.reduce<number | null>((low, score) => (low === null ? score : Math.min(low, score!)), null);
  const left: Candidate[] = [];
  const dropped = [...facts.dropped];
  for (const candidate of kept) {
    const reason = scoreReason(candidate, limits, scores.includes(null) ? null : lowest);
    if (reason === undefined) left.push(candidate);
    else dropped.push({ candidate, reason });
  }
  const negatives = sampleNegatives(left, sampling, stored.key);
  if (negatives.length < minNegatives) return { ...unmined('too_few_negatives'), dropped, left: left.length };
  const { group, query } = stored;
  const mined = { query, group, text: searched.text, positives, negatives };
  return { stored, result: { mined }, ...facts, dropped, left: left.length };
}
