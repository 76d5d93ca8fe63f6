import type { RetrieveCall } from '../../search/calls/retrieve-call.ts';

type Ranking = Pick<RetrieveCall, 'bm25' | 'bm25Order'>;

/** BM25's settings as the field `bm25` of a request: a factor k1 + 1 is named by the profile that has it. */
export function bm25Fields({ bm25, bm25Order }: Ranking): { readonly bm25?: object } {
  if (bm25 === undefined && bm25Order === undefined) return {};
  const { k1Factor = false, ...values } = bm25 ?? {};
  const order = bm25Order === undefined ? {} : { order: bm25Order };
  return { bm25: { ...(k1Factor ? { profile: 'elasticsearch' } : {}), ...values, ...order } };
}
