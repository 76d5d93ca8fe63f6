import type { TrawlError } from '../../src/base/errors.ts';
import { hitFields } from '../../src/index/passages/document-fields.ts';
import { isOfQuery } from '../../src/search/calls/query-errors.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { type EvalQueryForm, queriesOf } from '../query-form.ts';
import type { Question } from '../read-questions.ts';
import { checkTrecField, fuseLists, type RankedPassage } from '../run.ts';
import { type Asked, countingPassages, depthOf } from './searched-system.ts';

const BATCH_QUERIES = 256;

export type Ranking = Pick<RetrieveCall, 'mode' | 'filter' | 'bm25' | 'bm25Order' | 'hybrid' | 'rerank' | 'template'>;

interface SearchSettings extends Pick<Asked, 'k' | 'signal'>, Partial<Pick<Asked, 'ownId'>> {
  readonly form: EvalQueryForm;
  readonly ranking: Ranking;
  /** Whether the ids must fit in a TREC run. */
  readonly forRun: boolean;
  /**
   * Takes a question with a query that cannot be searched (`isOfQuery`); the query has no passages then. Default: the error ends the
   * search, as any other.
   */
  readonly onFailed?: (id: string, error: TrawlError) => void;
}

/**
 * Searches for all questions of an evaluation.
 *
 * @throws TrawlError of the first search that fails; with `forRun` at the first passage id that a TREC run cannot contain.
 */
export async function searchQuestions(retriever: Retriever, questions: readonly Question[], settings: SearchSettings) {
  const { form, k, ranking, forRun, onFailed, signal } = settings;
  const asked = questions.map((question) => ({ id: question.id, queries: queriesOf(question, form) }));
  const ids = asked.flatMap(({ id, queries }) => queries.map(() => id));
  const queries = asked.flatMap((question) => question.queries);
  const lists: RankedPassage[][] = [];
  for (let start = 0; start < queries.length; start += BATCH_QUERIES) {
    const batch = queries.slice(start, start + BATCH_QUERIES);
    const { outcomes } = await retriever.retrieve({ queries: batch, k: depthOf(settings), ...ranking, signal });
    for (const outcome of outcomes) {
      if (!outcome.ok) {
        if (onFailed === undefined || !isOfQuery(outcome.error)) throw outcome.error;
        onFailed(ids[lists.length]!, outcome.error);
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
  const counting = countingPassages(ids, lists, settings);
  return { ...foundPassages(asked, counting.lists, k), foundOwn: counting.foundOwn };
}

/** Groups the lists of all queries, in their order, by question. */
export function foundPassages(
  asked: readonly { readonly id: string; readonly queries: readonly unknown[] }[],
  lists: readonly (readonly RankedPassage[])[],
  k: number,
) {
  /** One list for each question; the lists of several queries are fused. */
  const run = new Map<string, readonly RankedPassage[]>();
  /** The lists of the queries of questions that have several, or none. */
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

/** Of a passage that several indexes have, the best place. */
function withoutRepeatedIds(ranked: readonly RankedPassage[]): RankedPassage[] {
  const seen = new Set<string>();
  return ranked.filter(({ id }) => !seen.has(id) && seen.add(id));
}
