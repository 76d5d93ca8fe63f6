import { TrawlError } from '../../base/errors.ts';
import type { FailedIndex, Hit, QueryAnswer, QueryOutcome, Reranking } from '../calls/query-outcome.ts';
import type { GroupMember } from './group-info.ts';

/** The constant of reciprocal rank fusion, as for the lists of several queries. */
const RRF_K = 60;

export interface GroupMerge {
  /** Hits of the merged list. */
  readonly k: number;
  /** Whether hits are ordered by their scores, or by their ranks in their indexes. */
  readonly byScore: boolean;
  /** Whether a query is answered from the indexes that did not fail. */
  readonly allowPartial: boolean;
}

/**
 * Merges the outcomes of a query, one per index. By rank, a hit's score is 1 / (60 + rank); equal scores are ordered by the index, in
 * the order of the group, and then by row.
 */
export function mergeOutcomes(
  members: readonly GroupMember[],
  outcomes: readonly QueryOutcome[],
  { k, byScore, allowPartial }: GroupMerge,
): QueryOutcome {
  const failed: FailedIndex[] = [];
  const answers: { readonly member: GroupMember; readonly answer: QueryAnswer }[] = [];
  for (const [i, outcome] of outcomes.entries()) {
    const member = members[i]!;
    if (outcome.ok) answers.push({ member, answer: outcome });
    else failed.push({ index: member.name, error: outcome.error });
  }
  const [first] = answers;
  if (first === undefined || (failed.length > 0 && !allowPartial)) {
    return { ok: false, error: errorOfIndex(failed[0]!) };
  }
  const useScores = byScore && answers.every(({ answer }) => answer.rerank?.ok !== false);
  const hits = answers
    .flatMap(({ member, answer }) => answer.hits.map((hit, at) => ofGroup(member, hit, at + 1, useScores)))
    .sort((a, b) => b.score - a.score || a.row - b.row)
    .slice(0, k);
  const rescored = answers.map(({ answer }) => answer.certificate.rescored);
  const rerank = mergedReranking(answers.flatMap(({ answer }) => answer.rerank ?? []));
  const ranges = answers.flatMap(({ member, answer }) =>
    (answer.ranges ?? []).map((each) => ({ ...each, index: member.name })),
  );
  const { tokens, truncated, text, cut, vector, certificate } = first.answer;
  return {
    ok: true,
    hits,
    tokens,
    truncated,
    text,
    cut,
    vector,
    certificate: {
      ...certificate,
      exact: answers.every(({ answer }) => answer.certificate.exact),
      rescored: rescored.includes(null) ? null : rescored.reduce((sum: number, rows) => sum + rows!, 0),
    },
    ...(ranges.length === 0 ? {} : { ranges }),
    rerank,
    ...(failed.length === 0 ? {} : { failedIndexes: failed }),
  };
}

/** The error with the name of its index. */
export function errorOfIndex({ index, error }: FailedIndex): TrawlError {
  return new TrawlError(error.code, `Index ${index}: ${error.message}`, {
    details: { ...error.details, index },
    cause: error,
  });
}

function ofGroup({ name, firstRow }: GroupMember, hit: Hit, rank: number, useScores: boolean): Hit {
  return {
    ...hit,
    row: firstRow + hit.row,
    score: useScores ? hit.score : Math.fround(1 / (RRF_K + rank)),
    source: { index: name, row: hit.row, score: hit.score },
  };
}

/** What was done for all indexes together, or the first failure. */
function mergedReranking(rerankings: readonly Reranking[]): Reranking | undefined {
  const [first] = rerankings;
  if (first === undefined) return undefined;
  let passages = 0;
  let truncated = 0;
  for (const each of rerankings) {
    if (!each.ok) return each;
    passages += each.passages;
    truncated += each.truncated;
  }
  return first.ok ? { ...first, passages, truncated } : first;
}
