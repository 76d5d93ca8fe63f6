import { type Question, withoutLabels } from '../../evaluation/read-questions.ts';
import { answerMatcher } from '../../src/search/answer-match.ts';
import { KnownQuestions, type RecordedQuestion } from '../records/known-questions.ts';

export type GoldQuestions = ReturnType<typeof goldQuestions>;
export type Gold = NonNullable<ReturnType<GoldQuestions['of']>>;

/**
 * Finds the relevant passages and golden answers of a record's question, by its id or its text.
 *
 * @param matcher the rule by which a passage has one of the answers. Default: DPR's rule, by which answers are counted.
 */
export function goldQuestions(questions: readonly Question[], matcher = answerMatcher) {
  const known = new KnownQuestions(questions);
  const goldOf = ({ goldIds, goldenAnswers = [] }: Question) => {
    const answers = withoutLabels(goldenAnswers);
    return {
      /** Ids of relevant passages; empty if none is known. */
      ids: new Set(goldIds) as ReadonlySet<string>,
      /** Whether a passage has a golden answer; undefined without golden answers, of which yes and no are none. */
      hasAnswer: answers.length === 0 ? undefined : matcher(answers),
    };
  };
  const golds = new Map<Question, ReturnType<typeof goldOf>>();
  return {
    /** Undefined for a record whose question is not known (`KnownQuestions.ofRecord`). */
    of(record: RecordedQuestion) {
      const question = known.ofRecord(record);
      if (question === undefined) return undefined;
      const gold = golds.get(question) ?? goldOf(question);
      golds.set(question, gold);
      return gold;
    },
  };
}
