import type { RecordedQuery } from './recorded-query.ts';

/** What a question of a file is found by. */
interface Known {
  readonly id: string;
  readonly question: string;
  readonly dataset?: string | undefined;
}

/** What is known of a question that is looked for. */
export interface WantedQuestion {
  readonly id: string | undefined;
  readonly dataset: string | undefined;
  readonly text: string | undefined;
}

/**
 * Questions of a file, found for records and trajectories. An id is unique only with its data set, so that it decides only
 * - among questions of the same data set, or where one side names none;
 * - if it has one question there, not several with different texts;
 * - if the texts are equal but for letter case, punctuation and spaces, unless both sides name the data set or one has no text.
 *
 * Else the text decides.
 */
export class KnownQuestions<T extends Known> {
  readonly #byId = new Map<string, T[]>();
  readonly #byText = new Map<string, T>();

  constructor(questions: readonly T[]) {
    for (const question of questions) {
      const others = this.#byId.get(question.id);
      if (others === undefined) this.#byId.set(question.id, [question]);
      else others.push(question);
      this.#byText.set(question.question.trim(), question);
    }
  }

  find(wanted: WantedQuestion): T | undefined {
    const byText = wanted.text === undefined ? undefined : this.#byText.get(wanted.text.trim());
    return this.#withId(wanted) ?? byText;
  }

  #withId({ id, dataset, text }: WantedQuestion): T | undefined {
    const found = (id === undefined ? undefined : this.#byId.get(id)) ?? [];
    const possible = found.filter((each) => agree(each.dataset, dataset));
    const [first] = possible;
    if (first === undefined) return undefined;
    const words = wordsOf(first.question);
    if (possible.some(({ question }) => wordsOf(question) !== words)) return undefined;
    const bothNamed = dataset !== undefined && first.dataset !== undefined;
    return bothNamed || text === undefined || wordsOf(text) === words ? first : undefined;
  }
}

/** Between question and query in texts that clients compose. */
const COMPOSED = ' [SEP] ';

/**
 * The question that a record belongs to: by `questionId` and the text of the question, which may stand before ` [SEP] ` in the query;
 * else by the query itself.
 */
export function questionOfRecord<T extends Known>(
  known: KnownQuestions<T>,
  { questionId, dataset, question, query }: RecordedQuery,
): T | undefined {
  const end = query.indexOf(COMPOSED);
  const text = question ?? (end > 0 ? query.slice(0, end) : undefined);
  return (
    known.find({ id: questionId, dataset, text }) ??
    (text === undefined ? known.find({ id: undefined, dataset, text: query }) : undefined)
  );
}

function agree(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
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
