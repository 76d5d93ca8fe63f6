import type { Question } from '../read-questions.ts';
import { type QuestionFormat, questionWith } from './question-format.ts';
import { supportingTitles } from './supporting-titles.ts';

/** HotpotQA and 2WikiMultihopQA: `{"_id", "question", "answer", "type", "supporting_facts"}`; test sets have no answer and no facts. */
export const hotpotQa: QuestionFormat = {
  name: 'HotpotQA or 2WikiMultihopQA',
  matches: (columns) =>
    columns.has('question') &&
    (columns.has('_id') || columns.has('id')) &&
    (columns.has('supporting_facts') || (columns.has('context') && Array.isArray(columns.get('context')))),
  parse(columns, _number, fail): Question {
    const answer = columns.get('answer');
    const facts = columns.get('supporting_facts') ?? [];
    const titles = supportingTitles(facts);
    if (titles === undefined && !(Array.isArray(facts) && facts.length === 0))
      throw fail('"supporting_facts" must be a list of pairs of a title and a sentence number');
    if (answer !== undefined && answer !== null && typeof answer !== 'string')
      throw fail('"answer" must be a string or absent');
    return questionWith(
      columns,
      { id: columns.get('_id') ?? columns.get('id'), question: columns.get('question') },
      { goldTitles: titles ?? [], goldenAnswers: typeof answer === 'string' && answer !== '' ? [answer] : [] },
      fail,
    );
  },
};
