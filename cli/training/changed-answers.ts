import type { Measures } from '../../training/iteration/records.ts';
import { compareLists } from '../../training/replay/compared-query.ts';
import { DEFAULT_PERSISTENCE, type RankedList } from '../../training/replay/rank-biased-overlap.ts';
import { ReplaySummary, type SummaryValues } from '../../training/replay/replay-summary.ts';

/**
 * Compares the answers to equal questions as `trawl replay` compares recorded ones. A question that cannot be searched has an empty list;
 * two of these say nothing.
 */
export function comparedAnswers(
  before: ReadonlyMap<string, RankedList>,
  now: ReadonlyMap<string, RankedList>,
  k: number,
): SummaryValues {
  const summary = new ReplaySummary([k]);
  for (const [id, list] of before) {
    const lists = { before: list, now: now.get(id)! };
    const compared = compareLists(lists, { cutoffs: [k], k: [k, k], p: DEFAULT_PERSISTENCE });
    summary.add({ turn: null, ...compared, gold: null, answer: null });
  }
  return summary.values;
}

/** How many answers have changed, and how much. */
export function changesOf({ overlap, rbo }: SummaryValues): Omit<Measures['answers'], 'of'> {
  const { k, mean, queries, same } = overlap[0]!;
  return { k, queries, changed: queries - same, replaced: mean === null ? null : 1 - mean, rbo };
}
