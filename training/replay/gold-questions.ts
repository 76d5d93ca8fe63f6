import { withoutLabels } from '../../evaluation/answer-labels.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import { answerMatcher } from '../../src/search/answer-match.ts';
import { composedParts } from '../../src/server/recording/composed-query.ts';
import { KnownQuestions } from '../records/known-questions.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';

/** What is known to be right for a question. */
export interface Gold {
  /** Ids of relevant passages; empty if none is known. */
  readonly ids: ReadonlySet<string>;
  /** Whether a passage has a golden answer; undefined without golden answers, of which yes and no are none. */
  readonly hasAnswer: ((contents: string) => boolean) | undefined;
}

/** Makes the test whether a passage has one of the answers. */
type AnswerMatcher = (answers: readonly string[]) => (contents: string) => boolean;

/** Questions with relevant passages and golden answers, found by the id or the text of a record's question. */
export class GoldQuestions {
  readonly #known: KnownQuestions<Question>;
  readonly #matcher: AnswerMatcher;
  /** Made when a question is first found. */
  readonly #golds = new Map<Question, Gold>();

  /** @param matcher the rule by which a passage has one of the answers. Default: DPR's rule, by which answers are counted. */
  constructor(questions: readonly Question[], matcher: AnswerMatcher = answerMatcher) {
    this.#known = new KnownQuestions(questions);
    this.#matcher = matcher;
  }

  /**
   * As `KnownQuestions` says, by `questionId` and the text of the question, which may stand before ` [SEP] ` in the query; else by the
   * query itself.
   */
  of({
    questionId,
    dataset,
    question,
    query,
  }: Pick<RecordedQuery, 'questionId' | 'dataset' | 'question' | 'query'>): Gold | undefined {
    const text = question ?? composedParts(query)?.question;
    const found = this.#known.find({ id: questionId, dataset, text, query });
    return found === undefined ? undefined : this.#goldOf(found);
  }

  #goldOf(question: Question): Gold {
    const known = this.#golds.get(question);
    if (known !== undefined) return known;
    const { goldIds = [], goldenAnswers = [] } = question;
    const answers = withoutLabels(goldenAnswers);
    const gold = {
      ids: new Set(goldIds),
      hasAnswer: answers.length === 0 ? undefined : this.#matcher(answers),
    };
    this.#golds.set(question, gold);
    return gold;
  }
}
