import { qrelLines } from '../../evaluation/judgements.ts';
import { questionLines } from '../../evaluation/read-questions.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { comparableText } from '../../src/base/comparable-text.ts';
import type { MiningQuery, SkipReason } from './mined-query.ts';
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

export type LoadCounts = Awaited<ReturnType<typeof loadQueries>>;

/** The questions of files (`questionLines`) in their order. Their positives are `gold_ids`. */
export async function* questionQueries(files: readonly string[]): AsyncGenerator<MiningQuery, void> {
  for (const file of files) {
    for await (const { id, question, query, history, roundIndex, dataset, goldIds, goldenAnswers } of questionLines(
      file,
    )) {
      const positiveIds = [...new Set(goldIds)];
      const answers = [...new Set(goldenAnswers)];
      yield { id, question, query, history, round: roundIndex, dataset, positiveIds, answers };
    }
  }
}

/** Reads the queries into the work file. Call it in `fill`. */
export async function loadQueries(work: WorkFile, source: QuerySource, signal?: AbortSignal) {
  for (const file of source.excluded) {
    for await (const { question } of questionLines(file)) work.addExcluded(comparableText(question));
  }
  if (source.qrels !== undefined) {
    for await (const { qrel } of qrelLines(source.qrels)) {
      if (qrel.grade >= 1) work.addJudgement(qrel.queryId, qrel.passageId);
    }
  }
  for await (const question of source.judged ?? []) work.addJudged(question);
  /** What was read, under the names of the report file. */
  const counts = {
    read: 0,
    /** Queries that are left out because their question or query is one of the excluded questions. */
    excluded: 0,
    unjudged: 0,
    /** Recorded queries that failed, and recorded queries of an unwanted split. */
    failed: 0,
    other_split: 0,
    /** Queries that were added to an earlier one with the same question and query. */
    merged: 0,
  };
  for await (const read of source.queries) {
    throwIfCancelled(signal);
    counts.read++;
    if (typeof read === 'string') {
      counts[read]++;
      continue;
    }
    const query = source.judged === undefined ? read : withJudgements(read, work);
    const positiveIds = source.qrels === undefined ? query.positiveIds : work.judgementsOf(query.id);
    const texts = [query.question, query.query].filter((text) => text !== undefined);
    if (texts.some((text) => work.isExcluded(comparableText(text)))) counts.excluded++;
    else if (positiveIds.length === 0) counts.unjudged++;
    else if (!work.addQuery({ ...query, positiveIds })) counts.merged++;
  }
  return counts;
}

/** A recorded query with what the judged question says. Without a sub-query, the question of the record may be the agent's query. */
function withJudgements(recorded: MiningQuery, work: WorkFile): MiningQuery {
  const { id, dataset, question, query } = recorded;
  const judged = work.judged({ id, dataset, text: query === undefined ? undefined : question, query: question });
  if (judged === undefined) return recorded;
  const isSameText = comparableText(question) === comparableText(judged.question);
  return {
    ...recorded,
    // Found by its id: what the record has in place of the question is the agent's query.
    question: isSameText ? question : judged.question,
    query: isSameText ? query : (query ?? question),
    id: id === '' ? judged.id : id,
    dataset: dataset ?? judged.dataset,
    positiveIds: judged.positiveIds,
    answers: judged.answers,
  };
}
