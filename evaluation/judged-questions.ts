import { TrawlError } from '../src/base/errors.ts';
import type { Judgements } from './judgements.ts';
import { type QuestionSetOptions, readQuestionSet } from './question-set.ts';
import { answersOf, type Question } from './read-questions.ts';

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
 * @throws TrawlError CORPUS_BAD_LINE for a file without questions or judgements, and as `readQuestionSet`.
 */
export async function readJudgedQuestions(file: string, options: QuestionSetOptions): Promise<JudgedQuestions> {
  const { questions, judgements, source, notes } = await readQuestionSet(file, options);
  if (options.qrels !== undefined && judgements.size === 0) throw empty(options.qrels, 'judgements');
  if (questions.length === 0) throw empty(file, judgements.size === 0 ? 'questions' : 'judged questions');
  return { questions, judgements, source, notes: [...notes, ...notesOn(questions, judgements, file)] };
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
  const answers = answersOf(questions);
  const labels = questions.filter(({ id, goldenAnswers = [] }) => goldenAnswers.length > 0 && !answers.has(id));
  if (labels.length > 0)
    yield `${labels.length} of ${questions.length} questions have yes or no, or another label, as answer, such as ${JSON.stringify(labels[0]!.id)}: ` +
      'passages cannot be searched for it, so it is no golden answer.';
  const nothing = questions.filter(
    ({ id, goldTitles = [] }) => !judgements.has(id) && goldTitles.length === 0 && !answers.has(id),
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
