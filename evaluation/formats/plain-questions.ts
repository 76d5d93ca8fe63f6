import { columnsOf, ID_COLUMNS, idColumn } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { type QuestionFormat, questionWith } from './question-format.ts';
import { supportingTitles } from './supporting-titles.ts';

/**
 * Questions with ids: Trawl's own (`parseQuestion`), those of BEIR, and FlashRAG's, whose `metadata` has the type of the question and
 * the titles of the supporting facts.
 */
export const plainQuestions: QuestionFormat = {
  name: 'questions with ids',
  matches: (columns) =>
    (columns.has('question') && ID_COLUMNS.some((name) => columns.has(name))) ||
    (columns.has('_id') && columns.has('text')),
  parse(columns, _number, fail): Question {
    const metadata = columnsOf(columns.get('metadata'));
    const type = metadata?.get('type');
    return questionWith(
      columns,
      { id: idColumn(columns), question: columns.get('question') ?? columns.get('text') },
      {
        goldTitles: supportingTitles(metadata?.get('supporting_facts')) ?? [],
        type: typeof type === 'string' ? type : undefined,
      },
      fail,
    );
  },
};
