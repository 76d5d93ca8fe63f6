import type { Judgements } from '../../evaluation/judgements.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { readQrels } from '../../evaluation/read-qrels.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import { TrawlError } from '../../src/errors.ts';

export interface JudgedQuestions {
  readonly questions: readonly Question[];
  readonly judgements: Judgements;
  /** The format of the questions, for people. */
  readonly source: string;
  /** Remarks on questions and judgements that do not fit together. */
  readonly notes: readonly string[];
}

/**
 * Reads questions with their judgements, or with those of a file of judgements.
 *
 * @throws TrawlError CORPUS_BAD_LINE for a file without questions or judgements, and as `readQuestionSet` and `readQrels`.
 */
export async function readJudgedQuestions(file: string, qrels: string | undefined): Promise<JudgedQuestions> {
  const { questions, judgements: own, source } = await readQuestionSet(file);
  if (questions.length === 0) throw empty(file, 'questions');
  const judgements = qrels === undefined ? own : await readQrels(qrels);
  if (qrels !== undefined && judgements.size === 0) throw empty(qrels, 'judgements');
  return { questions, judgements, source, notes: [...notesOn(questions, judgements, file)] };
}

function empty(path: string, what: string): TrawlError {
  return new TrawlError('CORPUS_BAD_LINE', `${path} has no ${what}, so there is nothing to measure.`, {
    details: { path },
  });
}

function* notesOn(questions: readonly Question[], judgements: Judgements, file: string): Generator<string, void> {
  const asked = new Set(questions.map(({ id }) => id));
  const unasked = [...judgements.keys()].filter((id) => !asked.has(id));
  if (unasked.length > 0)
    yield `${unasked.length} of ${judgements.size} judged queries are not in ${file}, such as ${JSON.stringify(unasked[0])}; ` +
      'their judgements are not used.';
  const nothing = questions.filter(
    ({ id, goldTitles = [], goldenAnswers = [] }) =>
      !judgements.has(id) && goldTitles.length === 0 && goldenAnswers.length === 0,
  );
  if (nothing.length > 0 && nothing.length < questions.length)
    yield `${nothing.length} of ${questions.length} questions have neither judgements nor answers, such as ${JSON.stringify(nothing[0]!.id)}: they count in no metric.`;
  const irrelevant = [...judgements].filter(
    ([id, grades]) => asked.has(id) && ![...grades.values()].some((grade) => grade > 0),
  );
  if (irrelevant.length > 0)
    yield `${irrelevant.length} judged questions have no relevant passage, such as ${JSON.stringify(irrelevant[0]![0])}: they count as 0.`;
}

/** Ids of the relevant passages of the questions. */
export function goldIds({ questions, judgements }: JudgedQuestions): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { id } of questions)
    for (const [passage, grade] of judgements.get(id) ?? []) if (grade > 0) ids.add(passage);
  return ids;
}
