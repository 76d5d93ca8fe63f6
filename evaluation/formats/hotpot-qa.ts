import { columnsOf, idColumn } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { distinctTexts, type QuestionFormat, questionWith } from './question-format.ts';
import { answersOf } from './questions-and-answers.ts';
import { supportingTitles } from './supporting-titles.ts';

/**
 * HotpotQA and 2WikiMultihopQA: `{"_id", "question", "answer", "type", "supporting_facts", "context"}`; test sets have no answer and no
 * facts. The Hugging Face version has `id`, and facts and context as columns.
 */
export const hotpotQa: QuestionFormat = {
  name: 'HotpotQA or 2WikiMultihopQA',
  matches: (columns) =>
    columns.has('question') &&
    (columns.has('_id') || columns.has('id')) &&
    (columns.has('supporting_facts') || isContext(columns.get('context'))),
  parse(columns, _number, fail): Question {
    const titles = supportingTitles(columns.get('supporting_facts') ?? []);
    if (titles === undefined)
      throw fail('"supporting_facts" must be a list of pairs of a title and a sentence number, or {"title": […], …}');
    const answer = columns.get('answer');
    return questionWith(
      columns,
      { id: columns.get('_id') ?? idColumn(columns), question: columns.get('question') },
      {
        goldTitles: titles,
        goldenAnswers: typeof answer === 'string' ? distinctTexts([answer]) : answersOf(columns, fail),
      },
      fail,
    );
  },
};

/** Whether this is the context of a question: pairs of a title and sentences, or both as columns. Other sets have lists of texts. */
function isContext(context: unknown): boolean {
  return Array.isArray(context)
    ? context.every((page) => Array.isArray(page))
    : Array.isArray(columnsOf(context)?.get('sentences'));
}
