import { hitFields } from '../../corpus/hit-fields.ts';
import type { TrawlError } from '../../src/base/errors.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { isOfQuery } from '../../src/search/calls/query-errors.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { fuseLists } from '../fuse-lists.ts';
import { type EvalQueryForm, queriesOf } from '../query-form.ts';
import type { Question } from '../read-questions.ts';
import type { RankedPassage } from '../run.ts';
import { checkTrecField } from '../trec-run.ts';
import { type CountingPassages, countingPassages, depthOf } from './own-passages.ts';
import type { Asked } from './searched-system.ts';

/** Queries searched at once. */
const BATCH_QUERIES = 256;

/** What was found for questions, by their ids. */
export interface FoundPassages {
  /** One list for each question: that of its query, or of its queries fused. */
  readonly run: ReadonlyMap<string, readonly RankedPassage[]>;
  /** The lists of the queries of questions that have several, or none. */
  readonly lists: ReadonlyMap<string, readonly (readonly RankedPassage[])[]>;
}

/** How the passages of every search are ranked. */
export type Ranking = Pick<RetrieveCall, 'mode' | 'filter' | 'bm25' | 'bm25Order' | 'hybrid' | 'rerank' | 'template'>;

interface SearchSettings extends Pick<Asked, 'k' | 'signal'>, Partial<Pick<Asked, 'ownId'>> {
  readonly ranking: Ranking;
  /** Whether the ids must fit in a TREC run. */
  readonly forRun: boolean;
}

/**
 * Searches for all questions of an evaluation.
 *
 * @param settings.onFailed takes a question of which a query cannot be searched (`isOfQuery`), which has no passages then. Default: it
 * is an error as any other.
 * @throws TrawlError of the first search that fails; with `forRun` at the first passage id that a TREC run cannot contain.
 */
export async function searchQuestions(
  retriever: Retriever,
  questions: readonly Question[],
  {
    form,
    onFailed,
    ...settings
  }: SearchSettings & { readonly form: EvalQueryForm; readonly onFailed?: (id: string, error: TrawlError) => void },
): Promise<FoundPassages & Pick<CountingPassages, 'foundOwn'>> {
  const asked = questions.map(({ id }, i) => ({ id, queries: queriesOf(questions[i]!, form) }));
  const ids = asked.flatMap(({ id, queries }) => queries.map(() => id));
  const lists = await searchAll(
    retriever,
    asked.flatMap(({ queries }) => queries),
    {
      ...settings,
      onFailed: onFailed === undefined ? undefined : (place, error) => onFailed(ids[place]!, error),
    },
  );
  const counting = countingPassages(ids, lists, settings);
  return { ...foundPassages(asked, counting.lists, settings.k), foundOwn: counting.foundOwn };
}

/** Puts the lists of all queries, in their order, together by question. */
export function foundPassages(
  asked: readonly { readonly id: string; readonly queries: readonly unknown[] }[],
  lists: readonly (readonly RankedPassage[])[],
  k: number,
): FoundPassages {
  const run = new Map<string, readonly RankedPassage[]>();
  const several = new Map<string, readonly (readonly RankedPassage[])[]>();
  let next = 0;
  for (const { id, queries } of asked) {
    const own = lists.slice(next, next + queries.length);
    next += queries.length;
    run.set(id, fuseLists(own, k));
    if (own.length !== 1) several.set(id, own);
  }
  return { run, lists: several };
}

async function searchAll(
  retriever: Retriever,
  queries: readonly EncoderInput[],
  {
    ranking,
    forRun,
    signal,
    onFailed,
    ...counting
  }: SearchSettings & { readonly onFailed?: (place: number, error: TrawlError) => void },
): Promise<RankedPassage[][]> {
  const lists: RankedPassage[][] = [];
  for (let start = 0; start < queries.length; start += BATCH_QUERIES) {
    const batch = queries.slice(start, start + BATCH_QUERIES);
    const { outcomes } = await retriever.retrieve({ queries: batch, k: depthOf(counting), ...ranking, signal });
    for (const outcome of outcomes) {
      if (!outcome.ok) {
        if (onFailed === undefined || !isOfQuery(outcome.error)) throw outcome.error;
        onFailed(lists.length, outcome.error);
        lists.push([]);
        continue;
      }
      const ranked = outcome.hits.map(({ row, score, document }): RankedPassage => {
        const { id, title, text } = hitFields(document, row);
        if (forRun) checkTrecField('passage id', id);
        return { id, score, text, title };
      });
      lists.push(retriever.info.members === undefined ? ranked : withoutRepeatedIds(ranked));
    }
  }
  return lists;
}

/** Of a passage that several indexes have, the best place. */
function withoutRepeatedIds(ranked: readonly RankedPassage[]): RankedPassage[] {
  const seen = new Set<string>();
  return ranked.filter(({ id }) => !seen.has(id) && seen.add(id));
}
