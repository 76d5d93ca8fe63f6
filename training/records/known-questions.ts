import { comparableText } from '../../src/base/comparable-text.ts';
import { composedParts } from '../../src/server/recording/composed-query.ts';
import type { RecordedQuery } from './recorded-query.ts';

interface Known {
  readonly id: string;
  readonly question: string;
  readonly dataset?: string;
}

export interface WantedQuestion {
  readonly id: string | undefined;
  readonly dataset: string | undefined;
  readonly text: string | undefined;
  /** What was searched for; without `text` it may be the question. */
  readonly query?: string;
}

interface QuestionTable<T extends Known> {
  withId(id: string): readonly T[];
  /** The question with this comparable text, which is not empty. */
  withText(comparable: string): T | undefined;
}

/**
 * The question of a record or trajectory. An id is unique only with its data set, so that it decides only
 * - among questions of the same data set, or where one side names none;
 * - if it has one question there, not several with different texts;
 * - if the texts are equal but for letter case, punctuation and spaces, unless both sides name the data set or one has no text.
 *
 * Else the text decides (`comparableText`).
 */
export function findQuestion<T extends Known>(table: QuestionTable<T>, wanted: WantedQuestion): T | undefined {
  const comparable = comparableText(wanted.text ?? wanted.query ?? '');
  return byId(table, wanted) ?? (comparable === '' ? undefined : table.withText(comparable));
}

function byId<T extends Known>(table: QuestionTable<T>, { id, dataset, text }: WantedQuestion): T | undefined {
  const found = id === undefined || id === '' ? [] : table.withId(id);
  const possible = found.filter(
    (each) => each.dataset === dataset || each.dataset === undefined || dataset === undefined,
  );
  const [first] = possible;
  if (first === undefined) return undefined;
  const words = wordsOf(first.question);
  if (possible.some(({ question }) => wordsOf(question) !== words)) return undefined;
  const bothNamed = dataset !== undefined && first.dataset !== undefined;
  return bothNamed || text === undefined || wordsOf(text) === words ? first : undefined;
}

export type RecordedQuestion = Pick<RecordedQuery, 'questionId' | 'dataset' | 'question' | 'query'>;

/** Questions in memory, which `findQuestion` finds. */
export class KnownQuestions<T extends Known> {
  readonly #byId = new Map<string, T[]>();
  readonly #byText = new Map<string, T>();

  constructor(questions: readonly T[]) {
    for (const question of questions) {
      const others = this.#byId.get(question.id);
      if (others === undefined) this.#byId.set(question.id, [question]);
      else others.push(question);
      this.#byText.set(comparableText(question.question), question);
    }
  }

  find(wanted: WantedQuestion): T | undefined {
    return findQuestion(
      { withId: (id) => this.#byId.get(id) ?? [], withText: (comparable) => this.#byText.get(comparable) },
      wanted,
    );
  }

  /** The question of a record, whose text may stand before ` [SEP] ` in the query; else the question that the query itself is. */
  ofRecord({ questionId, dataset, question, query }: RecordedQuestion): T | undefined {
    return this.find({ id: questionId, dataset, text: question ?? composedParts(query)?.question, query });
  }
}

/** The letters and digits of a text. One without any is compared as it is. */
function wordsOf(text: string): string {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, ' ')
      .trim() || text.trim()
  );
}
