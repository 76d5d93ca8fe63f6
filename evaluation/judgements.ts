import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';

/**
 * Relevance of passages to a query: passage id → grade. A grade of 1 or more is relevant; an unlisted passage has grade 0.
 * Ids are strings, so 12 and "12" are the same passage.
 */
export type QueryJudgements = ReadonlyMap<string, number>;

/** Query id → its judgements. An unlisted query has not been judged. */
export type Judgements = ReadonlyMap<string, QueryJudgements>;

export function relevantIds(judgements: QueryJudgements): ReadonlySet<string> {
  return new Set([...judgements].flatMap(([id, grade]) => (grade > 0 ? [id] : [])));
}

/** Reads a file as `qrelLines` does. @throws TrawlError CORPUS_BAD_LINE also for a pair that is judged twice. */
export async function readQrels(file: string): Promise<Judgements> {
  const judgements = new Map<string, Map<string, number>>();
  for await (const { number, qrel } of qrelLines(file)) {
    const ofQuery = judgements.get(qrel.queryId) ?? new Map<string, number>();
    if (ofQuery.has(qrel.passageId)) throw lineError(file, number, 'an earlier line judges the same query and passage');
    ofQuery.set(qrel.passageId, qrel.grade);
    judgements.set(qrel.queryId, ofQuery);
  }
  return judgements;
}

/**
 * Reads relevance judgements one by one: TREC qrels (`qid iter docid grade`, separated by white space), or BEIR's tab-separated
 * format with the header `query-id corpus-id score`.
 *
 * @throws TrawlError CORPUS_BAD_LINE for a malformed line or a grade that is not a whole number, CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* qrelLines(file: string) {
  let isBeir: boolean | undefined;
  for await (const { number, text } of readTextLines(file)) {
    if (isBeir === undefined) {
      isBeir = text === 'query-id\tcorpus-id\tscore';
      if (isBeir) continue;
    }
    const fields = isBeir ? text.split('\t') : text.trim().split(/\s+/);
    const [queryId, passageId, grade] = isBeir ? fields : [fields[0], fields[2], fields[3]];
    if (!queryId || !passageId || grade === undefined || fields.length > (isBeir ? 3 : 4)) {
      const expected = isBeir
        ? 'three tab-separated fields: query-id, corpus-id, score'
        : 'four fields: qid, iteration, docid, grade (or a first line "query-id<tab>corpus-id<tab>score")';
      throw lineError(file, number, `expected ${expected}`);
    }
    // pandas writes whole numbers as 1.0 if a column ever lacked one.
    if (!/^[+-]?\d{1,9}(\.0*)?$/.test(grade.trim())) {
      throw lineError(file, number, `the grade is ${JSON.stringify(grade.trim())}; it must be a whole number`);
    }
    yield { number, qrel: { queryId, passageId, grade: Number(grade) } };
  }
}
