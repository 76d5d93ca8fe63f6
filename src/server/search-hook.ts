import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Perturbed, QueryOutcome } from '../search/calls/query-outcome.ts';
import type { Retriever } from '../search/retriever.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { OriginSources } from './recording/read-origins.ts';

/** Changes searches on purpose. Whoever starts the server gives it one for an address (training/perturbation/). */
export interface SearchHook {
  /** What health checks and the list of indexes say of it. */
  readonly facts: object;
  readonly changes: readonly string[];
  /** Called when a request gets its first retriever. `count` is called with each change. */
  begin(sources: OriginSources, count: (change: string) => void): HookedRequest;
}

export interface HookedRequest {
  /** The retriever with its changes. All retrievers of a request share what concerns the request. */
  retriever(inner: Retriever, limits: HookLimits): Retriever;
  /**
   * Holds back or fails, as its texts decide, a request that embeds or reranks the texts of its client and searches nothing.
   *
   * @throws TrawlError PERTURBED for a request that fails on purpose, CANCELLED as soon as the signal aborts.
   */
  pass(texts: readonly string[], signal: AbortSignal): Promise<void>;
  /**
   * Takes note of what the answers of a search say of changes, by the position of each query, or of the search if it has one query without
   * a position.
   */
  note(answers: readonly (Perturbed | undefined)[], positions?: readonly number[]): void;
  /** Headers of the reply; none if nothing was searched. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The part of the server's configuration that concerns hooks. */
interface HookConfig {
  readonly searchHook: SearchHook | null;
  readonly metrics: ServerMetrics | null;
  readonly maxHits: number;
}

export interface HookLimits {
  /** Hits that the client gets per query, if the dialect says so before it searches. Default: the hits that a call asks for. */
  readonly shown?: number | undefined;
  /** Most hits of all queries of a search that goes deeper than the request asks. Default: no limit. */
  readonly maxHits?: number | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null if the address has no hook, or before a retriever was made for the request. */
    hooked: HookedRequest | null;
  }
}

/** The field of replies that states `SearchHook.facts`. */
export const HookFacts = Type.Object(
  {},
  {
    additionalProperties: true,
    description: 'What the server does to searches on purpose (--perturb). Absent if it does nothing.',
  },
);

export function hookFacts({ searchHook }: { readonly searchHook: SearchHook | null }): { perturbation?: object } {
  return searchHook === null ? {} : { perturbation: searchHook.facts };
}

/** Says in each reply of a search how it was changed. */
export function installSearchHook(app: FastifyInstance, hook: SearchHook | null, metrics: ServerMetrics): void {
  app.decorateRequest('hooked', null);
  for (const change of hook?.changes ?? []) metrics.perturbed(change, 0);
  app.addHook('onSend', async ({ hooked }, reply) => {
    if (hooked !== null) reply.headers(hooked.headers);
  });
}

/** The retriever with the changes of the address, if it has any. */
export function hookedRetriever(
  request: FastifyRequest,
  retriever: Retriever,
  { searchHook, metrics, maxHits }: HookConfig,
  { shown, record }: { readonly shown?: number | undefined; readonly record?: unknown },
): Retriever {
  if (searchHook === null) return retriever;
  const parameters = request.query as OriginSources['parameters'];
  const sources = { body: record, headers: request.headers, parameters };
  request.hooked ??= searchHook.begin(sources, (change) => metrics?.perturbed(change));
  return request.hooked.retriever(retriever, { shown, maxHits });
}

/** What the outcomes of a search say of changes. */
export function perturbedOf(outcomes: readonly QueryOutcome[]): (Perturbed | undefined)[] {
  return outcomes.map((outcome) => (outcome.ok ? outcome.perturbed : undefined));
}
