import { columnsOf, stringsOf } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { distinctTexts, type QuestionFormat, questionWith } from './question-format.ts';

/**
 * MuSiQue: `{"id", "question", "answer", "answer_aliases", "answerable", "paragraphs": [{"title", "is_supporting"}]}`. The type is the
 * number of hops, from the id (`2hop__…`). Questions that cannot be answered have no golden answers. MuSiQue-Full has each id twice, with
 * paragraphs that answer the question and with others that do not.
 */
export const musique: QuestionFormat = {
  name: 'MuSiQue',
  matches: (columns) => columns.has('paragraphs') && columns.has('question') && columns.has('id'),
  isCounterpart: (columns) => columns.get('answerable') === false,
  parse(columns, _number, fail): Question {
    const paragraphs = columns.get('paragraphs');
    if (!Array.isArray(paragraphs)) throw fail('"paragraphs" must be a list');
    const titles = distinctTexts(
      paragraphs.flatMap((paragraph: unknown) => {
        const own = columnsOf(paragraph);
        const title = own?.get('title');
        if (own === undefined || typeof title !== 'string') throw fail('each of "paragraphs" must have a "title"');
        return own.get('is_supporting') === true ? [title] : [];
      }),
    );
    const hops = /^(\d+hop)/.exec(String(columns.get('id')))?.[1];
    const answer = columns.get('answer');
    const answers =
      columns.get('answerable') === false || typeof answer !== 'string'
        ? []
        : distinctTexts([answer, ...(stringsOf(columns, 'answer_aliases', fail) ?? [])]);
    return questionWith(
      columns,
      { id: columns.get('id'), question: columns.get('question') },
      { goldTitles: titles, goldenAnswers: answers, type: hops },
      fail,
    );
  },
};
