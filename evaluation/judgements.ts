/**
 * Relevance of passages to a query: passage id → grade. A grade of 1 or more is relevant; an unlisted passage has grade 0.
 * Ids are strings, so 12 and "12" are the same passage.
 */
export type QueryJudgements = ReadonlyMap<string, number>;

/** Query id → its judgements. An unlisted query has not been judged. */
export type Judgements = ReadonlyMap<string, QueryJudgements>;

/** Ids of the passages that are relevant to the query. */
export function relevantIds(judgements: QueryJudgements): ReadonlySet<string> {
  return new Set([...judgements].flatMap(([id, grade]) => (grade > 0 ? [id] : [])));
}

/** Number of passages relevant to the query. */
export function relevantCount(judgements: QueryJudgements): number {
  let count = 0;
  for (const grade of judgements.values()) if (grade > 0) count += 1;
  return count;
}
