import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import type { RankedPassage } from '../run.ts';
import type { Asked } from './searched-system.ts';

type Counting = Pick<Asked, 'k'> & Partial<Pick<Asked, 'ownId'>>;

/** Passages per query that are retrieved, so that k count. */
export function depthOf({ k, ownId }: Counting): number {
  return ownId === undefined ? k : k + 1;
}

/** The passages that count. */
export interface CountingPassages {
  readonly lists: readonly (readonly RankedPassage[])[];
  /** Ids of the questions that found their own passage. */
  readonly foundOwn: ReadonlySet<string>;
}

/**
 * At most k passages of each list, without the one that has the id of its question, if that does not count: as in BEIR's evaluation
 * (`ignore_identical_ids`), because the queries of ArguAna and Quora are passages of the corpus.
 *
 * @param ids the query id of each list.
 */
export function countingPassages(
  ids: readonly string[],
  lists: readonly (readonly RankedPassage[])[],
  { k, ownId }: Counting,
): CountingPassages {
  const foundOwn = new Set<string>();
  const counting = lists.map((list, i) => {
    const own = ownId?.(ids[i]!);
    const others = list.filter(({ id }) => id !== own);
    if (own !== undefined && others.length < list.length) foundOwn.add(own);
    return others.slice(0, k);
  });
  return { lists: counting, foundOwn };
}

/** Says how many of the questions, by their query ids, found their own passage; nothing if none did. */
export function ownNotes(
  name: string,
  { foundOwn }: Pick<CountingPassages, 'foundOwn'>,
  ids: Iterable<string>,
  { ownId }: Pick<Asked, 'ownId'>,
): string[] {
  if (ownId === undefined || foundOwn.size === 0) return [];
  const questions = new Set(Array.from(ids, ownId)).size;
  return [
    `${name}: ${formatNumberOf(foundOwn.size, 'question')} of ${formatCount(questions)} found the passage with the question's own id, which does not count (--ignore-identical-ids).`,
  ];
}
