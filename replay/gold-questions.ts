import { answerMatcher } from '../evaluation/answer-match.ts';
import type { Question } from '../evaluation/read-questions.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';

/** What is known to be right for a question. */
export interface Gold {
  /** Ids of relevant passages; empty if none is known. */
  readonly ids: ReadonlySet<string>;
  /** Whether a passage has a golden answer; undefined without golden answers. */
  readonly hasAnswer: ((contents: string) => boolean) | undefined;
}

/** Between question and query in texts that clients compose. */
const COMPOSED = ' [SEP] ';

/** Questions with relevant passages and golden answers, found by the id or the text of a record's question. */
export class GoldQuestions {
  readonly #byId = new Map<string, Gold>();
  readonly #byText = new Map<string, Gold>();

  constructor(questions: readonly Question[]) {
    for (const { id, question, goldIds = [], goldenAnswers = [] } of questions) {
      const gold = {
        ids: new Set(goldIds),
        hasAnswer: goldenAnswers.length === 0 ? undefined : answerMatcher(goldenAnswers),
      };
      this.#byId.set(id, gold);
      this.#byText.set(question.trim(), gold);
    }
  }

  /** By `questionId`, else by the question, which may stand before ` [SEP] ` in the query, else by the query itself. */
  of({ questionId, question, query }: RecordedQuery): Gold | undefined {
    const byId = questionId === undefined ? undefined : this.#byId.get(questionId);
    if (byId !== undefined) return byId;
    const end = query.indexOf(COMPOSED);
    const text = question ?? (end > 0 ? query.slice(0, end) : query);
    return this.#byText.get(text.trim());
  }
}
