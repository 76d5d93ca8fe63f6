import { columnsOf } from '../question-columns.ts';
import type { Question } from '../read-questions.ts';
import { distinctTexts, type QuestionFormat, questionWith } from './question-format.ts';

/**
 * TriviaQA: `{"QuestionId", "Question", "Answer": {"Value", "Aliases"}}`, and `question_id`, `question`, … in the Hugging Face version,
 * which writes `<unk>` for the answers of its test set. Other sets have `question_id`, too, but no such answer.
 */
export const triviaQa: QuestionFormat = {
  name: 'TriviaQA',
  matches: (columns) =>
    columns.has('QuestionId')
      ? columnsOf(columns.get('Answer') ?? {}) !== undefined
      : columns.has('question_id') && columnsOf(columns.get('answer')) !== undefined,
  parse(columns, _number, fail): Question {
    const isOriginal = columns.has('QuestionId');
    const [idName, questionName, answerName] = isOriginal
      ? (['QuestionId', 'Question', 'Answer'] as const)
      : (['question_id', 'question', 'answer'] as const);
    const answer = columnsOf(columns.get(answerName));
    const aliases = answer?.get(isOriginal ? 'Aliases' : 'aliases') ?? [];
    const value = answer?.get(isOriginal ? 'Value' : 'value');
    if (!Array.isArray(aliases) || !aliases.every((alias) => typeof alias === 'string'))
      throw fail(`"${answerName}" must have a list of aliases`);
    const answers = distinctTexts([...(typeof value === 'string' && value !== '<unk>' ? [value] : []), ...aliases]);
    return questionWith(
      columns,
      { id: columns.get(idName), question: columns.get(questionName) },
      { goldenAnswers: answers },
      fail,
    );
  },
};
