import { type Columns, type Fail, idColumn, isAbsent } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { pythonStrings } from './python-strings.ts';
import { distinctTexts, type QuestionFormat, questionWith } from './question-format.ts';

const ANSWER_COLUMNS = ['possible_answers', 'answers', 'answer'] as const;

/**
 * A question with its answers, as in NQ-open (`{"question", "answer": […]}`), PopQA (a table with `possible_answers`), Bamboogle (a table
 * with `Question` and `Answer`) and DPR's question files (question, tab, list of answers). Answers are a list, or a text that is the only
 * answer or a list as Python or JSON write it. Questions without an id (`idColumn`) get their number.
 */
export const questionsAndAnswers: QuestionFormat = {
  name: 'questions with answers',
  matches: (columns) =>
    columns.has('question') &&
    isAbsent(columns.get('golden_answers')) &&
    ANSWER_COLUMNS.some((name) => columns.has(name)),
  parse(columns, number, fail): Question {
    return questionWith(
      columns,
      { id: idColumn(columns) ?? String(number), question: columns.get('question') },
      { goldenAnswers: answersOf(columns, fail) },
      fail,
    );
  },
};

/** The answers of the first of `ANSWER_COLUMNS` that is not null, distinct and without blank ones; empty without such a column. */
export function answersOf(columns: Columns, fail: Fail): string[] {
  const name = ANSWER_COLUMNS.find((each) => !isAbsent(columns.get(each)));
  return name === undefined ? [] : distinctTexts(answerTexts(columns.get(name), name, fail));
}

function answerTexts(value: unknown, name: string, fail: Fail): string[] {
  if (Array.isArray(value) && value.every((answer) => typeof answer === 'string')) return value;
  if (typeof value !== 'string') throw fail(`"${name}" must be a string or a list of strings`);
  if (!value.trimStart().startsWith('[')) return [value];
  const list = pythonStrings(value);
  if (list === undefined) throw fail(`"${name}" is ${JSON.stringify(value.slice(0, 80))}; expected a list of strings`);
  return list;
}
