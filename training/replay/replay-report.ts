import type { Difference } from './biggest-differences.ts';
import type { Unusable } from './recorded-call.ts';
import type { SummaryValues } from './replay-summary.ts';
import type { KnownPassage } from './replay-target.ts';

/**
 * Why a record was not compared, beside the reasons of `Unusable`:
 * - `otherIds`: none of its passages has an id that the other index has, and neither has a passage of any other record of its generation.
 *   Where one has, the passages of the record are gone, and it is compared;
 * - `withoutIds`: a passage has no id, and its row belongs to another generation.
 */
type NotCompared = Unusable | 'otherIds' | 'withoutIds';

export interface ReplayReport {
  readonly records: number;
  readonly notCompared: Readonly<Record<NotCompared, number>>;
  /** Searches that the target refused, by the code of the error. They are not compared. */
  readonly failed: Readonly<Record<string, number>>;
  /** Queries that fail now by themselves, by the code of the error. They are compared: nothing of what was found is found now. */
  readonly failedQueries: Readonly<Record<string, number>>;
  /** Queries of questions with golden answers for which it is not known whether a recorded passage had one. */
  readonly answersUnknown: number;
  /** The index that was asked, and its generations: several if it was reloaded meanwhile. */
  readonly against: { readonly index: string; readonly generations: readonly string[] };
  /** The generations of the records, at most 10 of them. */
  readonly recordedGenerations: readonly string[];
  readonly all: SummaryValues;
  /** By turn, those without a recorded turn (null) last; turns from 100 count as 100. */
  readonly turns: readonly ({ readonly turn: number | null } & SummaryValues)[];
  readonly differences: readonly ShownDifference[];
}

interface ShownPassage {
  readonly id: string | null;
  readonly row: number;
  readonly score: number;
  readonly title: string | null;
}

/** A query whose lists differ much, with both lists. */
export interface ShownDifference {
  readonly rbo: number;
  readonly query: string;
  readonly question: string | null;
  readonly trajectory: string | null;
  readonly turn: number | null;
  /** Titles are those that the target has under the same id; null if it does not have it. */
  readonly before: readonly ShownPassage[];
  readonly now: readonly ShownPassage[];
}

/** A difference with the titles that the target has. `known`: the recorded passages that were looked up; null if none were. */
export function shown(
  { rbo, record, now }: Difference,
  known: ReadonlyMap<string, KnownPassage> | null,
): ShownDifference {
  const { query, question = null, trajectory = null, turn = null, ids, rows, scores } = record;
  return {
    rbo,
    query,
    question,
    trajectory,
    turn,
    before: ids.map((id, i) => ({
      id,
      row: rows[i]!,
      score: scores[i]!,
      title: (id === null ? undefined : known?.get(id)?.title) ?? null,
    })),
    now: now.map(({ id, row, score, title }) => ({ id, row, score, title: title ?? null })),
  };
}
