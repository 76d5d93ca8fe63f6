import type { RankedPassage } from '../../evaluation/run.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { hitFields } from '../../corpus/hit-fields.ts';
import type { SearchedSystem } from '../../evaluation/systems/searched-system.ts';

/** Ids looked up at once. */
const BATCH_IDS = 4096;

/** Adds titles and texts from an index to the passages of a run. Passages that it does not have get an empty text, and are counted. */
export async function addTexts(
  system: SearchedSystem,
  retriever: Retriever,
  index: string,
  signal: AbortSignal,
): Promise<SearchedSystem> {
  const ids = [...new Set([...system.run.values()].flatMap((list) => list.map(({ id }) => id)))];
  const known = new Map<string, Pick<RankedPassage, 'title' | 'text'>>();
  for (let start = 0; start < ids.length; start += BATCH_IDS) {
    const keys = ids.slice(start, start + BATCH_IDS);
    const { found } = await retriever.find({ by: 'id', keys, limit: 1, signal });
    for (const [i, [passage]] of found.entries()) {
      if (passage === undefined) continue;
      const { title, text } = hitFields(passage.document, passage.row);
      known.set(keys[i]!, { text, ...(title === undefined ? {} : { title }) });
    }
  }
  const run = new Map(
    Array.from(system.run, ([queryId, list]) => [
      queryId,
      list.map((passage): RankedPassage => ({ ...passage, ...(known.get(passage.id) ?? { text: '' }) })),
    ]),
  );
  const unknown = ids.length - known.size;
  return {
    ...system,
    run,
    hasTexts: true,
    notes: [
      ...system.notes,
      ...(unknown === 0
        ? []
        : [
            `${unknown} of ${ids.length} passages of ${system.name} are not in ${index}, which gives their titles and texts, such as ${JSON.stringify(ids.find((id) => !known.has(id)))}.`,
          ]),
    ],
  };
}
