import { columnsOf } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { distinctTexts, type QuestionFormat, questionWith } from './question-format.ts';

/**
 * KILT: `{"id", "input", "output": [{"answer"?, "provenance"?: [{"title"}]}]}`. The relevant pages are those of all outputs, although
 * an output is one of several right ones: `title_hit@k` is then the fair measure. The classes of FEVER
 * are golden answers here, as yes and no in other sets, and `answersOf` leaves them out.
 */
export const kilt: QuestionFormat = {
  name: 'KILT',
  matches: (columns) => columns.has('input') && Array.isArray(columns.get('output')),
  parse(columns, _number, fail): Question {
    const outputs = columns.get('output');
    if (!Array.isArray(outputs)) throw fail('"output" must be a list');
    const parsed = outputs.map((output: unknown) => {
      const own = columnsOf(output);
      if (own === undefined) throw fail('each of "output" must be an object');
      return own;
    });
    const answers = distinctTexts(
      parsed.flatMap((output) => {
        const answer = output.get('answer');
        return typeof answer === 'string' ? [answer] : [];
      }),
    );
    const titles = distinctTexts(
      parsed.flatMap((output) => {
        const provenance = output.get('provenance') ?? [];
        if (!Array.isArray(provenance)) throw fail('"provenance" must be a list');
        return provenance.flatMap((page: unknown) => {
          const title = columnsOf(page)?.get('title');
          return typeof title === 'string' ? [title] : [];
        });
      }),
    );
    return questionWith(
      columns,
      { id: columns.get('id'), question: columns.get('input') },
      { goldTitles: titles, goldenAnswers: answers },
      fail,
    );
  },
};
