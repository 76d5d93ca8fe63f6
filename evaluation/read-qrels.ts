import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import type { Judgements } from './judgements.ts';

const BEIR_HEADER = ['query-id', 'corpus-id', 'score'] as const;

interface QrelFields {
  readonly queryId: string;
  readonly passageId: string;
  readonly grade: string;
}

/** The judgement of a passage for a query. A grade of 1 or more is relevant. */
export interface Qrel {
  readonly queryId: string;
  readonly passageId: string;
  readonly grade: number;
}

/** Reads a file as `qrelLines` does. Throws CORPUS_BAD_LINE for a pair judged twice, too. */
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
 * format with the header `query-id corpus-id score`. Throws CORPUS_BAD_LINE for a malformed line or a grade that is not a whole
 * number, CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* qrelLines(file: string): AsyncGenerator<{ readonly number: number; readonly qrel: Qrel }, void> {
  let parse: ((text: string) => QrelFields | null) | undefined;
  for await (const { number, text } of readTextLines(file)) {
    if (parse === undefined) {
      parse = isBeirHeader(text) ? parseBeir : parseTrec;
      if (parse === parseBeir) continue;
    }
    const qrel = parse(text);
    if (qrel === null) {
      const expected =
        parse === parseBeir
          ? 'three tab-separated fields: query-id, corpus-id, score'
          : 'four fields: qid, iteration, docid, grade (or a first line "query-id<tab>corpus-id<tab>score")';
      throw lineError(file, number, `expected ${expected}`);
    }
    // pandas writes whole numbers as 1.0 if a column ever lacked one.
    if (!/^[+-]?\d{1,9}(\.0*)?$/.test(qrel.grade)) {
      throw lineError(file, number, `the grade is ${JSON.stringify(qrel.grade)}; it must be a whole number`);
    }
    yield { number, qrel: { ...qrel, grade: Number(qrel.grade) } };
  }
}

function isBeirHeader(text: string): boolean {
  const names = text.split('\t');
  return names.length === BEIR_HEADER.length && BEIR_HEADER.every((name, position) => names[position] === name);
}

function parseBeir(text: string): QrelFields | null {
  const [queryId, passageId, grade, ...rest] = text.split('\t');
  if (!queryId || !passageId || grade === undefined || rest.length > 0) return null;
  return { queryId, passageId, grade: grade.trim() };
}

function parseTrec(text: string): QrelFields | null {
  const [queryId, iteration, passageId, grade, ...rest] = text.trim().split(/\s+/);
  if (!queryId || !iteration || !passageId || grade === undefined || rest.length > 0) return null;
  return { queryId, passageId, grade };
}
