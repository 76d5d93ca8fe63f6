import { type Judgements, relevantIds } from '../../evaluation/judgements.ts';
import { judgementsOf, type Question } from '../../evaluation/read-questions.ts';
import { type IndexPart, rowsOfIds } from './pool-lists.ts';

export type JudgedQuestions = Awaited<ReturnType<typeof judgedQuestions>>;

/**
 * The questions that have a relevant passage, with the rows of these passages. `judgements`: in place of the `gold_ids` of the
 * questions; a grade of 1 or more is relevant.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function judgedQuestions(
  questions: readonly Question[],
  judgements: Judgements | undefined,
  part: IndexPart,
) {
  const known = judgements ?? judgementsOf(questions);
  const wanted = questions.flatMap((question) => {
    const ids = [...relevantIds(known.get(question.id) ?? new Map())];
    return ids.length === 0 ? [] : [{ question, ids }];
  });
  const rows = await rowsOfIds(part, new Set(wanted.flatMap(({ ids }) => ids)));
  const judged = wanted.map((each) => ({
    question: each.question,
    /** The rows of each relevant passage: several if the index has its id several times, none if it does not have it. */
    relevant: each.ids.map((id) => rows.get(id) ?? []),
  }));
  const relevant = judged.flatMap((each) => each.relevant);
  return {
    read: questions.length,
    /** Questions without a relevant passage in the judgements. They are left out. */
    unjudged: questions.length - judged.length,
    judged,
    /** Relevant passages of all questions, and how many of them no search finds because the index lacks them in the scope. */
    relevant: relevant.length,
    missing: relevant.filter((found) => found.length === 0).length,
    example: wanted[0]?.ids[0],
  };
}
