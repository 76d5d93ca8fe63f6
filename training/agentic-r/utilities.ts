import { idField, integerField, objectField, shown, stringField, stringsField } from '../trajectories/item-fields.ts';
import { itemError, type ReadItem } from '../trajectories/read-items.ts';
import { roundKey } from './round-key.ts';

/** The utilities of a round: one number for each candidate, by its row. */
export type Utilities = ReadonlyMap<number, number>;

/** A round as Agentic-R's step 3-2 writes it. */
export interface GlobalRound {
  readonly question: string;
  /** The agent's earlier queries, oldest first. After a resume of step 3-2 some may be missing. */
  readonly history: readonly string[];
  readonly query: string;
  /** 1 if the agent answered correctly with this candidate alone, else 0. */
  readonly em: Utilities;
}

/** Why a round's utilities cannot be used. */
export class UnusableRound extends Error {
  override readonly name = 'UnusableRound';
}

/** The key of a line with `id` and `round_index`. @throws TrawlError CORPUS_BAD_LINE. */
export function utilityKey(item: ReadItem): string {
  return roundKey(idField(item, 'id'), integerField(item, 'round_index', 1));
}

/**
 * The judge's utilities of step 3-1: `docid_score` with whole numbers from 0 to 100.
 *
 * @throws UnusableRound for another number; TrawlError CORPUS_BAD_LINE.
 */
export function localUtilities(item: ReadItem): Utilities {
  return byRow(item, (score, id) => {
    if (Number.isInteger(score) && (score as number) >= 0 && (score as number) <= 100) return score as number;
    throw new UnusableRound(`the utility of passage ${id} is ${shown(score)}; expected a whole number from 0 to 100`);
  });
}

/**
 * A round of step 3-2: `docid_score` with `metric_score.em`.
 *
 * @throws UnusableRound for an `em` that is not 0 or 1; TrawlError CORPUS_BAD_LINE.
 */
export function globalRound(item: ReadItem): GlobalRound {
  return {
    question: stringField(item, 'question'),
    history: stringsField(item, 'history_queries'),
    query: stringField(item, 'current_query'),
    em: byRow(item, (score, id) => {
      const metrics = (score as { metric_score?: { em?: unknown } } | null)?.metric_score;
      if (metrics?.em === 0 || metrics?.em === 1) return metrics.em;
      throw new UnusableRound(`metric_score.em of passage ${id} is ${shown(metrics?.em)}; expected 0 or 1`);
    }),
  };
}

function byRow(item: ReadItem, numberOf: (score: unknown, id: string) => number): Utilities {
  const scores = objectField(item, 'docid_score');
  return new Map(
    Object.entries(scores).map(([id, score]) => {
      if (!/^\d{1,15}$/.test(id)) {
        throw itemError(
          item.place,
          `"docid_score" has the passage ${JSON.stringify(id)}; expected row numbers of the index, written as strings`,
        );
      }
      return [Number(id), numberOf(score, id)];
    }),
  );
}
