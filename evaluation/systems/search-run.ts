import { readRun } from '../run.ts';
import { type Asked, countingPassages, depthOf, ownNotes, type SearchedSystem } from './searched-system.ts';

/** The results of a TREC run for the questions. @throws TrawlError as `readRun`. */
export async function searchRun(name: string, place: string, asked: Asked): Promise<SearchedSystem> {
  const { questions, k, gold } = asked;
  const found = await readRun(place);
  const answered = questions.filter(({ id }) => found.has(id)).map(({ id }) => id);
  const retrieved = answered.map((id) => found.get(id)!.slice(0, depthOf(asked)));
  const counting = countingPassages(answered, retrieved, asked);
  const run = new Map(answered.map((id, i) => [id, counting.lists[i]!]));
  const absent = questions.filter(({ id }) => !found.has(id));
  const others = [...found.keys()].filter((id) => !run.has(id));
  const ids = [...run.keys()].flatMap((id) => found.get(id)!.map((passage) => passage.id));
  const lacksGold = gold.size > 0 && !ids.some((id) => gold.has(id));
  const short = retrieved.filter((list) => list.length < k).length;
  const notes: string[] = [];
  if (absent.length > 0)
    notes.push(
      `${absent.length} of ${questions.length} questions have no results in ${place}, such as ${JSON.stringify(absent[0]!.id)}: they count as 0.`,
    );
  if (others.length > 0)
    notes.push(
      `${others.length} of ${found.size} queries of ${place} are not in the questions, such as ${JSON.stringify(others[0])}: they are not used.`,
    );
  if (lacksGold && ids.length > 0)
    notes.push(
      `none of ${ids.length} passages of ${place} is relevant to any question, such as ${JSON.stringify(ids[0])}. Check that the judgements use the ids of this run.`,
    );
  notes.push(...ownNotes(name, counting.foundOwn, answered, asked.ownId));
  if (short > 0) notes.push(`${short} of ${run.size} lists of ${place} have fewer than ${k} passages.`);
  const what = `run ${place}`;
  return { name, what, run, hasIds: true, hasTexts: false, lacksGold, failed: new Map(), notes };
}
