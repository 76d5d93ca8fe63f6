import { questionLines } from '../../evaluation/question-lines.ts';
import { qrelLines } from '../../evaluation/read-qrels.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { comparableText } from '../../src/base/comparable-text.ts';
import type { WantedQuestion } from '../records/known-questions.ts';
import type { MiningQuery, SkipReason } from './mining-query.ts';
import type { WorkFile } from './work-file.ts';

export interface QuerySource {
  readonly queries: AsyncIterable<MiningQuery | SkipReason>;
  /** Judged questions. If given, a query takes positives, answers and id from its question among them (`WorkFile.judged`). */
  readonly judged?: AsyncIterable<MiningQuery>;
  /** Judgements that take the place of the queries' positives, by the id of the query. */
  readonly qrels?: string;
  /** Files of questions that must not be trained on. */
  readonly excluded: readonly string[];
}

/** What was read, under the names of the report file. */
export interface LoadCounts {
  readonly read: number;
  /** Queries that are left out because their question or query is one of the excluded questions. */
  readonly excluded: number;
  /** Queries that are left out because they have no judgements. */
  readonly unjudged: number;
  /** Recorded queries that failed, and recorded queries of an unwanted split. */
  readonly failed: number;
  readonly other_split: number;
  /** Queries that were added to an earlier one with the same question and query. */
  readonly merged: number;
}

/** Reads the queries into the work file. Call it in `fill`. */
export async function loadQueries(work: WorkFile, source: QuerySource, signal?: AbortSignal): Promise<LoadCounts> {
  for (const file of source.excluded) {
    for await (const { question } of questionLines(file)) work.addExcluded(comparableText(question));
  }
  if (source.qrels !== undefined) {
    for await (const { qrel } of qrelLines(source.qrels)) {
      if (qrel.grade >= 1) work.addJudgement(qrel.queryId, qrel.passageId);
    }
  }
  if (source.judged !== undefined) {
    for await (const question of source.judged) work.addJudged(question);
  }
  const counts = { read: 0, excluded: 0, unjudged: 0, failed: 0, other_split: 0, merged: 0 };
  for await (const read of source.queries) {
    throwIfCancelled(signal);
    counts.read++;
    if (typeof read === 'string') {
      counts[read]++;
      continue;
    }
    const query = source.judged === undefined ? read : withJudged(read, work.judged(wantedOf(read)));
    const positiveIds = source.qrels === undefined ? query.positiveIds : work.judgementsOf(query.id);
    if (isExcluded(work, query)) counts.excluded++;
    else if (positiveIds.length === 0) counts.unjudged++;
    else if (!work.addQuery({ ...query, positiveIds })) counts.merged++;
  }
  return counts;
}

/** What a recorded query says of its question. Without a sub-query, the text of the question may be the agent's query. */
function wantedOf({ id, dataset, question, query }: MiningQuery): WantedQuestion {
  return { id, dataset, text: query === undefined ? undefined : question, query: question };
}

function withJudged(query: MiningQuery, judged: MiningQuery | undefined): MiningQuery {
  if (judged === undefined) return query;
  const { id, question, dataset, positiveIds, answers } = judged;
  const isSameText = comparableText(query.question) === comparableText(question);
  return {
    ...query,
    // Found by its id: what the record has in place of the question is the agent's query.
    ...(isSameText ? {} : { question, query: query.query ?? query.question }),
    id: query.id === '' ? id : query.id,
    ...(query.dataset === undefined && dataset !== undefined ? { dataset } : {}),
    positiveIds,
    answers,
  };
}

function isExcluded(work: WorkFile, { question, query }: MiningQuery): boolean {
  return work.isExcluded(comparableText(question)) || (query !== undefined && work.isExcluded(comparableText(query)));
}
