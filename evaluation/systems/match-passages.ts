import { comparableText } from '../../src/base/comparable-text.ts';
import type { ServerPassage } from '../../src/server/dialects/dialect.ts';
import type { RankedPassage, Run } from '../run.ts';
import type { MatchedBy } from './searched-system.ts';

/** Comparable text → ids of the relevant passages that have it, in the corpus's order. */
export type GoldTexts = ReadonlyMap<string, readonly string[]>;

/** The passages of a server with the ids that judgements use. */
export interface MatchedPassages {
  /** A list for each given one, in their order and with their repetitions. */
  readonly lists: readonly (readonly RankedPassage[])[];
  readonly by: MatchedBy | null;
  /** Passages in the replies, those without an id, without a score, and those that are relevant for any question. */
  readonly passages: number;
  readonly withoutId: number;
  readonly withoutScore: number;
  readonly relevant: number;
}

/**
 * Gives each passage of a server's lists the id by which it is judged: its own; with `texts`, that of a passage with its text, one that
 * is relevant to the list's question if there is one. Of several such ids, the second copy in a list has the second, and so on.
 * Passages without an id have one made of title and text, so equal passages of several queries are one.
 *
 * @param texts comparable text → ids of the relevant passages of all questions that have it; undefined: the server's ids count.
 * @param gold for each list the ids of the passages that are relevant to its question.
 * @param anyGold ids of the relevant passages of all questions.
 */
export function matchPassages(
  lists: readonly (readonly ServerPassage[])[],
  texts: GoldTexts | undefined,
  gold: readonly ReadonlySet<string>[],
  anyGold: ReadonlySet<string>,
): MatchedPassages {
  const numbers = new Map<string, number>();
  const counts = { passages: 0, withoutId: 0, withoutScore: 0, relevant: 0 };
  const matched = lists.map((list, place) => {
    const given = new Set<string>();
    return list.map((passage, i): RankedPassage => {
      const { title, text, score } = passage;
      const ids = judgedIds(passage, texts);
      const relevant = ids.filter((id) => gold[place]!.has(id));
      const own = relevant.find((id) => !given.has(id)) ?? relevant[0] ?? ids[0];
      if (texts !== undefined && own !== undefined) given.add(own);
      counts.passages += 1;
      if (passage.id === undefined) counts.withoutId += 1;
      if (score === undefined) counts.withoutScore += 1;
      if (own !== undefined && anyGold.has(own)) counts.relevant += 1;
      return {
        id: own ?? unknownId(passage, `${place} ${i}`, numbers),
        score: score ?? -i,
        text,
        title,
      };
    });
  });
  const { passages, withoutId } = counts;
  const by = texts !== undefined ? 'text' : passages > 0 && withoutId === passages ? null : 'id';
  return { lists: matched, by, ...counts };
}

/** The ids that a passage may have among judgements. With `texts` its own id cannot be taken for that of a judgement. */
export function judgedIds({ id, contents }: ServerPassage, texts: GoldTexts | undefined): readonly string[] {
  const own = id === undefined ? [] : [texts === undefined ? id : `server:${id}`];
  return texts?.get(comparableText(contents)) ?? own;
}

/** A short id for a passage without one: the number of its text. Passages without text differ. */
function unknownId({ title = '', contents }: ServerPassage, place: string, numbers: Map<string, number>): string {
  const text = comparableText(`${title}\n${contents}`);
  // No comparable text begins with white space.
  const key = text === '' ? ` ${place}` : text;
  const number = numbers.get(key) ?? numbers.size + 1;
  numbers.set(key, number);
  return `no-id:${number}`;
}

/**
 * A run for a file, whose readers order by score: as it is if the scores fall along each list, else with −rank as the scores.
 * Distances, for instance, rise.
 *
 * @param missing whether passages without a score are in it.
 */
export function orderedByScore(run: Run, missing: boolean): { readonly run: Run; readonly replaced: boolean } {
  const falls = [...run.values()].every((list) => list.every(({ score }, i) => i === 0 || list[i - 1]!.score >= score));
  if (falls && !missing) return { run, replaced: false };
  const ranks = (list: readonly RankedPassage[]) => list.map((passage, i) => ({ ...passage, score: -(i + 1) }));
  return { run: new Map(Array.from(run, ([id, list]) => [id, ranks(list)])), replaced: true };
}
