import { columnsOf, idColumn, idOf, stringsOf } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { distinctTexts, type QuestionFormat, questionWith } from './question-format.ts';

/**
 * DPR's training and development files: `{"question", "answers", "positive_ctxs": [{"passage_id"?, "title"?}]}`. Relevant passages are
 * the positive ones that have an id (`passage_id`, or `psg_id`), relevant pages their titles.
 */
export const dpr: QuestionFormat = {
  name: 'DPR',
  matches: (columns) => columns.has('question') && columns.has('positive_ctxs'),
  parse(columns, number, fail): Question {
    const positives = columns.get('positive_ctxs');
    if (!Array.isArray(positives)) throw fail('"positive_ctxs" must be a list');
    const passages = positives.map((passage: unknown) => columnsOf(passage) ?? new Map<string, unknown>());
    const ids = passages.flatMap((passage) => {
      const id = passage.get('passage_id') ?? passage.get('psg_id') ?? undefined;
      return id === undefined ? [] : [idOf(id, '"passage_id"', fail)];
    });
    const titles = passages.flatMap((passage) => {
      const title = passage.get('title');
      return typeof title === 'string' ? [title] : [];
    });
    const answers = stringsOf(columns, 'answers', fail) ?? [];
    return questionWith(
      columns,
      { id: idColumn(columns) ?? String(number), question: columns.get('question') },
      { goldIds: distinctTexts(ids), goldTitles: distinctTexts(titles), goldenAnswers: distinctTexts(answers) },
      fail,
    );
  },
};
