import type { Question } from '../../evaluation/read-questions.ts';
import type { RankedPassage } from '../../evaluation/run.ts';
import { checkTrecField } from '../../evaluation/trec-run.ts';
import type { TrawlError } from '../../src/errors.ts';
import { isOfQuery } from '../../src/retrieval/calls/query-errors.ts';
import type { RetrieveCall } from '../../src/retrieval/calls/retrieve-call.ts';
import type { Retriever } from '../../src/retrieval/retriever.ts';
import { hitFields } from '../hit-fields.ts';
import { type QueryForm, queryOf } from '../query-form.ts';
import type { Ranking } from '../ranking-options.ts';

/** Queries searched at once. */
const BATCH_QUERIES = 256;

/**
 * Searches for all questions of an evaluation and returns their ranked passages by the questions' ids.
 *
 * @param options.onFailed takes a question whose own query cannot be searched (`isOfQuery`), which has no passages then. Default: it is an
 * error as any other.
 * @throws TrawlError of the first search that fails; with `forRun` at the first passage id that a TREC run cannot contain.
 */
export async function searchQuestions(
  retriever: Retriever,
  questions: readonly Question[],
  {
    form,
    k,
    ranking,
    forRun,
    onFailed,
    signal,
  }: {
    form: QueryForm;
    k: number;
    ranking: Ranking & Pick<RetrieveCall, 'template'>;
    forRun: boolean;
    onFailed?: (id: string, error: TrawlError) => void;
    signal: AbortSignal;
  },
): Promise<Map<string, RankedPassage[]>> {
  const run = new Map<string, RankedPassage[]>();
  for (let start = 0; start < questions.length; start += BATCH_QUERIES) {
    const batch = questions.slice(start, start + BATCH_QUERIES);
    const { outcomes } = await retriever.retrieve({
      queries: batch.map((question) => queryOf(question, form)),
      k,
      ...ranking,
      signal,
    });
    for (const [i, outcome] of outcomes.entries()) {
      if (!outcome.ok) {
        if (onFailed === undefined || !isOfQuery(outcome.error)) throw outcome.error;
        onFailed(batch[i]!.id, outcome.error);
        run.set(batch[i]!.id, []);
        continue;
      }
      const ranked = outcome.hits.map(({ row, score, document }): RankedPassage => {
        const { id, title, contents } = hitFields(document, row);
        if (forRun) checkTrecField('passage id', id);
        return { id, score, text: contents, ...(title === undefined ? {} : { title }) };
      });
      run.set(batch[i]!.id, retriever.info.members === undefined ? ranked : withoutRepeatedIds(ranked));
    }
  }
  return run;
}

/** Of a passage that several indexes have, the best place. */
function withoutRepeatedIds(ranked: readonly RankedPassage[]): RankedPassage[] {
  const seen = new Set<string>();
  return ranked.filter(({ id }) => !seen.has(id) && seen.add(id));
}
