import { answerMatcher } from '../evaluation/answer-match.ts';
import type { Question } from '../evaluation/read-questions.ts';
import { KnownQuestions, questionOfRecord } from '../records/known-questions.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';

/** What is known to be right for a question. */
export interface Gold {
  /** Ids of relevant passages; empty if none is known. */
  readonly ids: ReadonlySet<string>;
  /** Whether a passage has a golden answer; undefined without golden answers. */
  readonly hasAnswer: ((contents: string) => boolean) | undefined;
}

/** Questions with relevant passages and golden answers, found by the id or the text of a record's question. */
export class GoldQuestions {
  readonly #known: KnownQuestions<Question>;
  /** Made when a question is first found. */
  readonly #golds = new Map<Question, Gold>();

  constructor(questions: readonly Question[]) {
    this.#known = new KnownQuestions(questions);
  }

  /** As `questionOfRecord` says. */
  of(record: RecordedQuery): Gold | undefined {
    const found = questionOfRecord(this.#known, record);
    return found === undefined ? undefined : this.#goldOf(found);
  }

  #goldOf(question: Question): Gold {
    const known = this.#golds.get(question);
    if (known !== undefined) return known;
    const { goldIds = [], goldenAnswers = [] } = question;
    const gold = {
      ids: new Set(goldIds),
      hasAnswer: goldenAnswers.length === 0 ? undefined : answerMatcher(goldenAnswers),
    };
    this.#golds.set(question, gold);
    return gold;
  }
}
