import { questionLines } from '../../evaluation/question-lines.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import type { MiningQuery } from './mining-query.ts';

/** The questions of files (`questionLines`) in their order. Their positives are `gold_ids`. */
export async function* questionQueries(files: readonly string[]): AsyncGenerator<MiningQuery, void> {
  for (const file of files) for await (const question of questionLines(file)) yield miningQuery(question);
}

function miningQuery({
  id,
  question,
  query,
  history,
  roundIndex,
  dataset,
  goldIds,
  goldenAnswers,
}: Question): MiningQuery {
  return {
    id,
    question,
    query,
    history,
    round: roundIndex,
    dataset,
    positiveIds: [...new Set(goldIds)],
    answers: [...new Set(goldenAnswers)],
  };
}
