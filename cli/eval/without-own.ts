import type { RankedPassage } from '../../evaluation/run.ts';
import { formatCount, formatNumberOf } from '../format.ts';
import type { SearchedSystem } from './searched-system.ts';

/**
 * Drops the passage that has the id of the question from every list, and keeps k of the others: as BEIR's evaluation does by default
 * (`ignore_identical_ids`), because the queries of ArguAna and Quora are passages of the corpus.
 *
 * @param questionOf the id of the question that a query id stands for.
 */
export function withoutOwn(system: SearchedSystem, k: number, questionOf: (id: string) => string): SearchedSystem {
  let dropped = 0;
  const others = (id: string, list: readonly RankedPassage[]): RankedPassage[] =>
    list.filter((passage) => passage.id !== questionOf(id)).slice(0, k);
  const run = new Map(
    Array.from(system.run, ([id, list]) => {
      if (list.some((passage) => passage.id === questionOf(id))) dropped += 1;
      return [id, others(id, list)];
    }),
  );
  const lists =
    system.lists && new Map(Array.from(system.lists, ([id, all]) => [id, all.map((list) => others(id, list))]));
  const note = `${system.name}: ${formatNumberOf(dropped, 'question')} of ${formatCount(run.size)} found the passage with the question's own id, which does not count (--ignore-identical-ids).`;
  return {
    ...system,
    run,
    ...(lists === undefined ? {} : { lists }),
    notes: dropped === 0 ? system.notes : [...system.notes, note],
  };
}
