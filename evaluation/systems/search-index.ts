import { TrawlError } from '../../src/base/errors.ts';
import { hitFields } from '../../src/index/passages/document-fields.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { passagesById } from '../passages-by-id.ts';
import type { EvalQueryForm } from '../query-form.ts';
import type { RankedPassage } from '../run.ts';
import { type Ranking, searchQuestions } from './search-questions.ts';
import { type Asked, ownNotes, type SearchedSystem } from './searched-system.ts';

export interface IndexSystem {
  readonly name: string;
  /** Path or address, for messages. */
  readonly place: string;
  /** The options that this system alone has, as `name=value`. */
  readonly settings: readonly string[];
  readonly retriever: Retriever;
  readonly form: EvalQueryForm;
  readonly ranking: Ranking;
}

/**
 * Searches an index for all questions.
 *
 * @param forRun whether the ids must fit in a TREC run.
 * @throws TrawlError of the first search that fails.
 */
export async function searchIndex(
  { name, place, settings, retriever, form, ranking }: IndexSystem,
  asked: Asked,
  forRun: boolean,
): Promise<SearchedSystem> {
  const { questions, k, ownId, gold, signal } = asked;
  const failed = new Map<string, string>();
  const { run, lists, foundOwn } = await searchQuestions(retriever, questions, {
    form,
    k,
    ownId,
    ranking,
    forRun,
    onFailed: (id, error) => failed.set(id, error.message),
    signal,
  });
  const absent = await absentIds(retriever, gold, signal);
  const notes: string[] = [];
  const [first] = failed;
  if (first !== undefined)
    notes.push(
      `${name}: ${failed.size} of ${questions.length} questions cannot be searched and are left out of the metrics. The first: ${first[0]}: ${first[1]}`,
    );
  const lacksGold = gold.size > 0 && absent.length === gold.size;
  if (absent.length > 0)
    notes.push(
      `${absent.length} of ${gold.size} relevant passages are not in ${place}, such as ${JSON.stringify(absent[0])}: no search can find them.${lacksGold ? ' Check that the judgements use the ids of this index.' : ''}`,
    );
  return {
    name,
    what: [`index ${place}`, ...settings].join(', '),
    run,
    lists,
    hasIds: true,
    hasTexts: true,
    lacksGold,
    failed,
    notes: [...notes, ...ownNotes(name, foundOwn, run.keys(), ownId)],
  };
}

/** Adds titles and texts from an index to the passages of a run. A passage that the index lacks gets an empty text, and is counted. */
export async function addTexts(
  system: SearchedSystem,
  { retriever, place }: Pick<IndexSystem, 'retriever' | 'place'>,
  signal: AbortSignal,
): Promise<SearchedSystem> {
  const ids = new Set([...system.run.values()].flatMap((list) => list.map(({ id }) => id)));
  const known = new Map<string, Pick<RankedPassage, 'title' | 'text'>>();
  const unknown: string[] = [];
  for await (const [id, [passage]] of passagesById(retriever, ids, { limit: 1, signal })) {
    if (passage === undefined) {
      unknown.push(id);
      continue;
    }
    const { title, text } = hitFields(passage.document, passage.row);
    known.set(id, { text, title });
  }
  const run = Array.from(system.run, ([queryId, list]) => {
    const texts = list.map((passage): RankedPassage => ({ ...passage, ...(known.get(passage.id) ?? { text: '' }) }));
    return [queryId, texts] as const;
  });
  const missing = `${unknown.length} of ${ids.size} passages of ${system.name} are not in ${place}, which gives their titles and texts, such as ${JSON.stringify(unknown[0])}.`;
  return {
    ...system,
    run: new Map(run),
    hasTexts: true,
    notes: unknown.length === 0 ? system.notes : [...system.notes, missing],
  };
}

/** The ids that the index does not have; empty if it cannot look ids up. */
async function absentIds(retriever: Retriever, ids: ReadonlySet<string>, signal: AbortSignal): Promise<string[]> {
  const absent: string[] = [];
  try {
    for await (const [id, found] of passagesById(retriever, ids, { limit: 1, signal })) {
      if (found.length === 0) absent.push(id);
    }
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'NOT_SUPPORTED') return [];
    throw error;
  }
  return absent;
}
