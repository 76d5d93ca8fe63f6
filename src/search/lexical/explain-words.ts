import { TrawlError } from '../../base/errors.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { ExplainedTerm } from '../calls/lookup-calls.ts';

/** Limit of the terms in the answer to a call. It bounds the memory of calls with long queries. */
const MAX_EXPLAINED_TERMS = 1_000_000;

export interface WordsToExplain {
  readonly text: string;
  readonly rows: readonly number[];
}

/**
 * Returns, for each query and row, the terms of the query that the row has, field by field. A field with the weight 0 is left out.
 *
 * @throws TrawlError K_TOO_LARGE if there are more than a million terms.
 */
export async function explainWords(
  { indexes }: LexicalFields,
  queries: readonly WordsToExplain[],
  ranking: Bm25Ranking,
  signal: AbortSignal | undefined,
): Promise<ExplainedTerm[][][]> {
  const { weights = {}, tieBreaker: _, ...parameters } = ranking;
  const answers: ExplainedTerm[][][] = [];
  let left = MAX_EXPLAINED_TERMS;
  for (const { text: query, rows } of queries) {
    const explained = rows.map((): ExplainedTerm[] => []);
    for (const [field, index] of indexes) {
      const weight = weights[field] ?? 1;
      if (weight === 0) continue;
      const request = { query, rows, parameters, weight, maxTerms: left, signal };
      const found = await index.explain(request);
      left -= found.reduce((sum, terms) => sum + terms.length, 0);
      if (left < 0) throw tooManyTerms();
      for (const [i, terms] of found.entries()) for (const term of terms) explained[i]!.push({ ...term, field });
    }
    answers.push(explained);
  }
  return answers;
}

function tooManyTerms(): TrawlError {
  return new TrawlError(
    'K_TOO_LARGE',
    `The hits have more than ${MAX_EXPLAINED_TERMS} terms of their queries, the limit of explained terms per request. Send fewer ` +
      'or shorter queries per request, ask for fewer passages, or leave out explain.',
    { details: { maxTerms: MAX_EXPLAINED_TERMS } },
  );
}
