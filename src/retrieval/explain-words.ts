import type { Bm25Ranking } from '../lexical-index/bm25.ts';
import type { LexicalFields } from '../lexical-index/lexical-fields.ts';
import type { ExplainedTerm } from './retriever.ts';

export interface WordsToExplain {
  readonly text: string;
  readonly rows: readonly number[];
  readonly ranking: Bm25Ranking;
  readonly signal: AbortSignal | undefined;
}

/** Returns, for each row, the terms of the text that it has, field by field. A field with the weight 0 is left out. */
export async function explainWords(
  { indexes }: LexicalFields,
  { text, rows, ranking, signal }: WordsToExplain,
): Promise<ExplainedTerm[][]> {
  const { weights = {}, tieBreaker: _, ...parameters } = ranking;
  const explained = rows.map((): ExplainedTerm[] => []);
  for (const [field, index] of indexes) {
    const weight = weights[field] ?? 1;
    if (weight === 0) continue;
    const request = { query: text, rows, parameters, weight, ...(signal === undefined ? {} : { signal }) };
    for (const [i, terms] of (await index.explain(request)).entries()) {
      for (const term of terms) explained[i]!.push({ ...term, field });
    }
  }
  return explained;
}
