import { Type } from 'typebox';
import type { EncoderInput } from '../../encoder/text-encoder.ts';
import type { ExplainCall, ExplainedTerm } from '../../search/calls/lookup-calls.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { HYBRID_FUSIONS } from '../../search/hybrid/hybrid-settings.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { SearchMode } from '../../search/search-mode.ts';
import type { StageTimings } from '../../search/timings.ts';
import { RequestError } from '../errors/request-error.ts';

/** The field `terms` of a hit. */
export const HitTerm = Type.Object({
  term: Type.String({ description: 'A word of the query after analysis (lower case, stemming).' }),
  field: Type.String({
    description: 'The part of the passage that has the term: contents, or title or text in an index with both apart.',
  }),
  boost: Type.Number({ description: 'Number of times that the query has the term, times the weight of the field.' }),
  documentFrequency: Type.Integer({ description: 'Number of passages of the index that have the term in the field.' }),
  score: Type.Number({
    description: "The term's part of the field's score, which is the sum of its parts, rounded to float32. A float32.",
  }),
});

const Range = Type.Union(
  [
    Type.Object({
      best: Type.Number({ description: 'The first score of the list.' }),
      floor: Type.Number({ description: 'The score that counts as 0: the last one, or 0 for a short list of bm25.' }),
    }),
    Type.Null(),
  ],
  { description: 'Null for an empty list.' },
);

/** The field `fusion` of a result. */
export const ExplainedFusion = Type.Object({
  fusion: Type.Enum([...HYBRID_FUSIONS]),
  rrfK: Type.Number(),
  denseWeight: Type.Number(),
  bm25Weight: Type.Number(),
  depth: Type.Integer(),
  formula: Type.String({ description: 'The score of a hit. A list that does not have the passage adds 0.' }),
  lists: Type.Array(Type.Object({ index: Type.Optional(Type.String()), dense: Range, bm25: Range }), {
    description: 'Between which scores each list is scaled; with several indexes one entry per index.',
  }),
});

/** Largest number of hits that a request can have explained. A hit has a few dozen terms at most times. */
const MAX_EXPLAINED_HITS = 10_000;

export interface FoundHit {
  /** Position of the query that found it. */
  readonly query: number;
  readonly hit: Hit;
}

/** The terms of each hit for the query that found it. */
export async function explainHits(
  retriever: Retriever,
  found: readonly FoundHit[],
  { queries, ...call }: Omit<ExplainCall, 'queries'> & { readonly queries: readonly EncoderInput[] },
): Promise<{ terms: ReadonlyMap<Hit, readonly ExplainedTerm[]>; timings: StageTimings }> {
  const hits = queries.map((): Hit[] => []);
  for (const { query, hit } of found) hits[query]!.push(hit);
  const { explained, timings } = await retriever.explain({
    ...call,
    queries: queries.map((query, i) => ({ query, rows: hits[i]!.map(({ row }) => row) })),
  });
  const terms = new Map(hits.flatMap((list, i) => list.map((hit, at) => [hit, explained[i]![at]!] as const)));
  return { terms, timings };
}

export function refuseTooManyExplained(queries: number, k: number): void {
  if (queries * k <= MAX_EXPLAINED_HITS) return;
  const reason = `${queries} queries with ${k} passages each exceed the limit of ${MAX_EXPLAINED_HITS} explained passages per reply.`;
  throw new RequestError('K_TOO_LARGE', `${reason} Send fewer queries per request, or leave out explain.`, [
    { type: 'less_than_equal', loc: ['body', 'explain'], msg: reason },
  ]);
}

export function explainNeedsBm25(mode: SearchMode): RequestError {
  const reason = `explain needs mode bm25 or hybrid, but the mode is ${mode}.`;
  return new RequestError('INVALID_REQUEST', `body.explain: ${reason} Set "mode": "bm25", or leave out explain.`, [
    { type: 'value_error', loc: ['body', 'explain'], msg: reason },
  ]);
}
