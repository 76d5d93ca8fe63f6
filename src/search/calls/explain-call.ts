import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { TermScore } from '../../engine/lexical/lexical-index.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import type { StageTimings } from '../timings.ts';
import type { RetrieveQuery } from './retrieve-call.ts';
import type { RowScope } from './row-scope.ts';

/**
 * Asks for the parts of the scores of hits of BM25. It continues an accepted request, so it is not refused under load. A row outside of
 * the scope, or a deleted one, has no terms.
 */
export interface ExplainCall extends RowScope {
  readonly queries: readonly { readonly query: RetrieveQuery; readonly rows: readonly number[] }[];
  /** The parameters of the search. Default: k1 and b of the index, without the factor. */
  readonly bm25?: Bm25Ranking;
  /** That of the search. */
  readonly template?: QueryTemplate;
  readonly signal?: AbortSignal;
}

/** A term of a query in a passage that has it. */
export interface ExplainedTerm extends TermScore {
  readonly field: LexicalField;
}

export interface ExplainResult {
  /** For each query and row, the terms of the query that the row has, in the order of the query. Their scores are exact. */
  readonly explained: readonly (readonly (readonly ExplainedTerm[])[])[];
  readonly timings: StageTimings;
}
