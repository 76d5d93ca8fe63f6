import type { RankedPassage, Run } from '../../evaluation/run.ts';
import type { ServerPassage } from '../../evaluation/server/dialect-client.ts';
import { comparableText } from '../../src/comparable-text.ts';
import type { MatchedBy } from './searched-system.ts';

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
 * Gives each passage of a server's lists the id by which it is judged: its own; with `texts`, that of the relevant passage with its
 * text. Passages without an id have one made of title and text, so equal passages of several queries are one.
 *
 * @param texts comparable text → id of the relevant passages; undefined: the server's ids count.
 * @param gold ids of the relevant passages.
 */
export function matchPassages(
  lists: readonly (readonly ServerPassage[])[],
  texts: ReadonlyMap<string, string> | undefined,
  gold: ReadonlySet<string>,
): MatchedPassages {
  const numbers = new Map<string, number>();
  const counts = { passages: 0, withoutId: 0, withoutScore: 0, relevant: 0 };
  const matched = lists.map((list, place) =>
    list.map((passage, i): RankedPassage => {
      const { title, contents, score } = passage;
      const own = judgedId(passage, texts);
      counts.passages += 1;
      if (passage.id === undefined) counts.withoutId += 1;
      if (score === undefined) counts.withoutScore += 1;
      if (own !== undefined && gold.has(own)) counts.relevant += 1;
      return {
        id: own ?? unknownId(passage, `${place} ${i}`, numbers),
        score: score ?? -i,
        text: contents,
        ...(title === undefined ? {} : { title }),
      };
    }),
  );
  const { passages, withoutId } = counts;
  const by = texts !== undefined ? 'text' : passages > 0 && withoutId === passages ? null : 'id';
  return { lists: matched, by, ...counts };
}

/** The id of a passage among judgements; undefined if it has none. With `texts` its own id cannot be taken for that of a judgement. */
export function judgedId(
  { id, contents }: ServerPassage,
  texts: ReadonlyMap<string, string> | undefined,
): string | undefined {
  if (texts === undefined) return id;
  return texts.get(comparableText(contents)) ?? (id === undefined ? undefined : `server:${id}`);
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
