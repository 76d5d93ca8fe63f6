import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import type { Column } from '../../../src/engine/filter/column.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { Perturbation } from '../../../training/perturbation/perturbation.ts';
import type { GoldPassages, GoldQuery } from '../../../training/perturbation/request-perturbation.ts';
import { type PerturbationSettings, perturbationSettings } from '../../../training/perturbation/settings.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { postTo } from '../../server/build.ts';

const DOCUMENTS = Array.from({ length: 400 }, (_, i) =>
  JSON.stringify({ id: `p-${i}`, title: `T ${i}`, text: `Text ${i}.` }),
);

export function retriever(): FakeRetriever {
  return new FakeRetriever({ documents: DOCUMENTS });
}

type Rates = Partial<PerturbationSettings['rates']>;

type Amounts = Partial<Omit<PerturbationSettings, 'rates'>>;

export function perturbs(rates: Rates, amounts: Amounts = {}, gold: GoldPassages | null = null): Partial<ServerConfig> {
  return { searchHook: new Perturbation(perturbationSettings(rates, { delayMs: 1, ...amounts }), gold) };
}

/** The passages with an even number are gold for each question, and what was asked is kept. */
export function evenIsGold(asked: GoldQuery[] = []): GoldPassages {
  return {
    of(query) {
      asked.push(query);
      return (document) => Number(documentFields(document).id!.replace(/\D/g, '')) % 2 === 0;
    },
  };
}

interface SearchReply {
  readonly results: readonly {
    readonly certificate: { readonly exact: boolean };
    readonly perturbed?: object;
    readonly hits?: readonly { readonly id: string; readonly score: number; readonly distractor?: true }[];
  }[];
  readonly hits?: readonly { readonly distractor?: true }[];
}

export async function search(app: FastifyInstance, body: object, headers: Record<string, string> = {}) {
  const reply = await postTo(app, '/v1/search', body, { 'content-type': 'application/json', ...headers });
  assert.equal(reply.status, 200, reply.text);
  return { ...(reply.json as SearchReply), header: reply.headers['x-trawl-perturbed'] };
}

export const ARTICLES = Array.from({ length: 40 }, (_, i) => ({
  id: `a-${i}`,
  title: `Article ${i}`,
  text: `${'river '.repeat(1 + (i % 7))}and bridge ${i}`,
  number: i,
}));

export const COLUMNS: readonly Column[] = [{ name: 'number', type: 'number' }];
