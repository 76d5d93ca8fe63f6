import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { packageVersion } from '../../base/package-root.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { unknownView } from '../../index/views/view-definition.ts';
import { Patience } from '../../search/calls/retrieve-call.ts';
import { narrowedRetriever } from '../../search/layers/passing-retriever.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';
import { hookedRetriever } from '../search-hook.ts';
import type { ServerConfig } from '../server-config.ts';
import { chosenIndex, pathView } from './index-choice.ts';
import type { IndexRegistry } from './index-registry.ts';

/** The header of a reply that names the views of the request. */
export const VIEW_HEADER = 'x-trawl-view';

declare module 'fastify' {
  interface FastifyRequest {
    /** The views that the API key of the request is bound to; null without a key. */
    keyViews: readonly string[] | null;
    /** The views that limited the request; null until a retriever was made for it. */
    usedViews: readonly string[] | null;
    /** `answerState` of the retriever that was made for the request; null until then, and if there were several. */
    answerState: string | null;
  }
}

/** Names the views and the state of each reply in its headers, and counts its requests. */
export function installViews(app: FastifyInstance, metrics: Pick<ServerMetrics, 'viewed'>): void {
  app.decorateRequest('keyViews', null);
  app.decorateRequest('usedViews', null);
  app.decorateRequest('answerState', null);
  app.addHook('onSend', async ({ usedViews, answerState: state }, reply) => {
    if (state !== null) reply.header(STATE_HEADER, state);
    if (usedViews === null || usedViews.length === 0) return;
    reply.header(VIEW_HEADER, usedViews.join());
    for (const view of usedViews) metrics.viewed(view);
  });
}

/** The views of a request, for the log: their names with commas in between; nothing without views. */
export function viewFact(views: readonly string[] | null): { readonly view?: string } {
  return views === null || views.length === 0 ? {} : { view: views.join() };
}

/** The views of the API key of a request, of the address and of its path. */
function viewsOf(request: FastifyRequest, config: ServerConfig): readonly string[] {
  return [...new Set([...(request.keyViews ?? []), ...config.views, pathView(request.raw) ?? []].flat())];
}

/** Whether there are passages that a request may not find. */
export function isLimited(request: FastifyRequest, config: ServerConfig): boolean {
  return config.filter !== null || viewsOf(request, config).length > 0;
}

/** Whether an index has all views of a request, so that the request can use it. */
export function hasViewsOf(
  request: FastifyRequest,
  { views: known }: Pick<RetrieverInfo, 'views'>,
  config: ServerConfig,
): boolean {
  return viewsOf(request, config).every((view) => known.some(({ name }) => name === view));
}

/**
 * The retriever as a request may use it. It stays within the views of the request's API key, address and path, and within the filter of
 * the address; it waits no longer than the address allows, and makes the changes of the address's hook. Every route that returns passages
 * gets its retriever here.
 *
 * @param search what is known of the search of the request: see `hookedRetriever`.
 * @throws TrawlError NOT_FOUND if the index does not have one of the views.
 */
export function retrieverFor(
  request: FastifyRequest,
  retriever: Retriever,
  config: ServerConfig,
  search: { readonly shown?: number; readonly record?: unknown } = {},
): Retriever {
  const { index, views: ofIndex, members = [{ index, views: ofIndex }] } = retriever.info;
  const views = viewsOf(request, config);
  for (const view of views) {
    // In a group, one of its indexes.
    const lacking = members.find((member) => !member.views.some(({ name }) => name === view));
    if (lacking === undefined) continue;
    const known = lacking.views.map(({ name }) => name);
    throw unknownView(view, lacking.index, known);
  }
  // A request such as _msearch gets several retrievers, so that no single state identifies its answer: null from the second one on.
  request.answerState = request.usedViews === null ? answerState(retriever.info, views, config.filter) : null;
  request.usedViews = [...new Set([...(request.usedViews ?? []), ...views])];
  const narrowed = narrowedRetriever(retriever, {
    views,
    filter: config.filter ?? undefined,
    patience: config.shedAfterMs === 0 ? undefined : new Patience(config.shedAfterMs),
  });
  return hookedRetriever(request, narrowed, config, search);
}

/**
 * Runs work with the retriever of a request, whose index stays open until the work ends.
 *
 * @throws TrawlError NOT_READY or NOT_FOUND, or as `retrieverFor`.
 */
export async function withRetriever<Result>(
  request: FastifyRequest,
  holder: IndexRegistry,
  config: ServerConfig,
  work: (retriever: Retriever, whole: Retriever) => Promise<Result>,
): Promise<Result> {
  const lease = holder.lease(chosenIndex(request));
  try {
    return await work(retrieverFor(request, lease.retriever, config), lease.retriever);
  } finally {
    lease.release();
  }
}

/** The header identifies what the answer depends on beside the request: see `answerState`. */
const STATE_HEADER = 'x-trawl-state';

/** A hash that changes with Trawl's version, the index, its encoder and reranker, the passages of the views, and the address's filter. */
function answerState(info: RetrieverInfo, views: readonly string[], filter: Filter | null): string {
  const { index, generation, members, model, reranker } = info;
  const state = {
    version: packageVersion,
    index,
    generation,
    model: model?.sha256,
    reranker,
    filter,
    views: views.map((view) =>
      [info, ...(members ?? [])].map((member) => member.views.find(({ name }) => name === view)),
    ),
  };
  return createHash('sha256').update(JSON.stringify(state)).digest('hex').slice(0, 32);
}
