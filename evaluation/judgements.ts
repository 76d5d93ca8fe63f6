/**
 * How relevant passages are to a query: passage id → grade. A grade of 1 or more is relevant; a passage that is not
 * listed has grade 0. Ids are compared as text, so that 12 and "12" are the same passage.
 */
export type QueryJudgements = ReadonlyMap<string, number>;

/** Query id → its judgements. A query that is not listed has not been judged. */
export type Judgements = ReadonlyMap<string, QueryJudgements>;

/** How many passages are relevant to the query. */
export function relevantCount(judgements: QueryJudgements): number {
  let count = 0;
  for (const grade of judgements.values()) if (grade > 0) count += 1;
  return count;
}
