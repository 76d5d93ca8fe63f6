import type { Judgements } from '../../evaluation/judgements.ts';
import { judgementsOf, type Question } from '../../evaluation/read-questions.ts';
import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { rowsOfIds } from './rows-of-ids.ts';

/** A held-out question whose relevant passages are known. */
interface JudgedQuestion {
  readonly question: Question;
  /** The rows of each relevant passage: several if the index has its id several times, none if it does not have it. */
  readonly relevant: readonly (readonly number[])[];
}

export interface JudgedQuestions {
  /** Questions of the file. */
  readonly read: number;
  /** Questions without a relevant passage in the judgements. They are left out. */
  readonly unjudged: number;
  readonly judged: readonly JudgedQuestion[];
  /** Relevant passages of all questions, and how many of them no search finds because the index lacks them in the scope. */
  readonly relevant: number;
  readonly missing: number;
  /** The id of the first relevant passage. */
  readonly example: string | undefined;
}

/**
 * The questions that have a relevant passage, with the rows of these passages. `judgements`: in place of the `gold_ids` of the
 * questions; a grade of 1 or more is relevant.
 *
 * @throws TrawlError NOT_SUPPORTED if the index has no look-up by id.
 */
export async function judgedQuestions(
  questions: readonly Question[],
  judgements: Judgements | undefined,
  { retriever, scope, signal }: { retriever: Retriever; scope: RowScope; signal: AbortSignal | undefined },
): Promise<JudgedQuestions> {
  const known = judgements ?? judgementsOf(questions);
  const wanted = questions.flatMap((question) => {
    const grades = known.get(question.id) ?? new Map<string, number>();
    const ids = [...grades].filter(([, grade]) => grade > 0).map(([id]) => id);
    return ids.length === 0 ? [] : [{ question, ids }];
  });
  const ids = new Set(wanted.flatMap((each) => each.ids));
  const rows = await rowsOfIds(retriever, ids, { scope, signal });
  const judged = wanted.map((each) => ({
    question: each.question,
    relevant: each.ids.map((id) => rows.get(id) ?? []),
  }));
  const relevant = judged.flatMap((each) => each.relevant);
  return {
    read: questions.length,
    unjudged: questions.length - judged.length,
    judged,
    relevant: relevant.length,
    missing: relevant.filter((found) => found.length === 0).length,
    example: wanted[0]?.ids[0],
  };
}
