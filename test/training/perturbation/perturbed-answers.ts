import assert from 'node:assert/strict';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import type { QueryAnswer } from '../../../src/search/calls/query-outcome.ts';
import type { RetrieveQuery } from '../../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../../src/search/retriever.ts';
import { Perturbation } from '../../../training/perturbation/perturbation.ts';
import { perturbingRetriever } from '../../../training/perturbation/perturbing-retriever.ts';
import { type GoldPassages, RequestPerturbation } from '../../../training/perturbation/request-perturbation.ts';
import { type PerturbationSettings, perturbationSettings } from '../../../training/perturbation/settings.ts';
import { FakeRetriever, type FakeRetrieverOptions } from '../../helpers/fake-retriever.ts';

export const PASSAGES = 200;

export const DOCUMENTS = Array.from({ length: PASSAGES }, (_, row) =>
  JSON.stringify({ id: `p-${row}`, text: `Passage ${row}.` }),
);

/** Ranks 200 passages, each query in its own order. */
export function ranking(options: FakeRetrieverOptions = {}): FakeRetriever {
  return new FakeRetriever({ documents: DOCUMENTS, ...options });
}

export type Rates = Partial<PerturbationSettings['rates']>;

export type Amounts = Partial<Omit<PerturbationSettings, 'rates'>>;

export function perturbation(rates: Rates, amounts: Amounts = {}, gold: GoldPassages | null = null): Perturbation {
  return new Perturbation(perturbationSettings(rates, amounts), gold);
}

/** The passages with these ids are gold for every question. */
export function goldIds(...ids: readonly string[]): GoldPassages {
  return { of: () => (document) => ids.includes(documentFields(document).id!) };
}

interface Requested {
  readonly shown?: number;
  readonly maxHits?: number;
  readonly caller?: string;
}

/** The retriever of one request. */
export function requested(inner: Retriever, of: Perturbation, { caller = '', ...request }: Requested = {}): Retriever {
  const options = { perturbation: of, caller, asked: () => [], onPerturbed: () => undefined };
  return perturbingRetriever(inner, new RequestPerturbation(options), request);
}

export async function answers(
  inner: Retriever,
  of: Perturbation,
  queries: readonly RetrieveQuery[],
  { k = 5, ...request }: Requested & { readonly k?: number } = {},
): Promise<readonly QueryAnswer[]> {
  const { outcomes } = await requested(inner, of, request).retrieve({ queries, k });
  return outcomes.map((outcome) => {
    assert.ok(outcome.ok);
    return outcome;
  });
}

export const QUERIES = Array.from({ length: 400 }, (_, i) => `query ${i}`);
export const rowsOf = ({ hits }: QueryAnswer): number[] => hits.map(({ row }) => row);
