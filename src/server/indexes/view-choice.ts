import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { packageVersion } from '../../base/package-root.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { unknownView } from '../../index/views/unknown-view.ts';
import { RequestPatience } from '../../search/admission.ts';
import { narrowedRetriever } from '../../search/layers/narrowed-retriever.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';
import { hookedRetriever } from '../search-hook.ts';
import type { ServerConfig } from '../server-config.ts';
import { pathView } from './index-choice.ts';

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

/** The views of a request, for replies, the log and the record: their names with commas in between; nothing without views. */
export function viewFact(views: readonly string[] | null | undefined): { readonly view?: string } {
  return views === null || views === undefined || views.length === 0 ? {} : { view: views.join() };
}

/** The views of the API key of a request, of the address and of its path. */
function viewsOf(request: FastifyRequest, config: ServerConfig): readonly string[] {
  const inPath = pathView(request.raw);
  return [...new Set([...(request.keyViews ?? []), ...config.views, ...(inPath === undefined ? [] : [inPath])])];
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
 * The retriever as a request may use it: within the views of its API key, of the address and of its path, and within the filter of the
 * address, waiting no longer than the address allows, and with the changes of its hook. Every route that returns passages gets its retriever here.
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
    // In a group, the index that lacks it.
    const without = members.find((member) => !member.views.some(({ name }) => name === view));
    if (without === undefined) continue;
    throw unknownView(
      view,
      without.index,
      without.views.map(({ name }) => name),
    );
  }
  // Null again after several indexes, as of _msearch.
  request.answerState = request.usedViews === null ? answerState(retriever.info, views, config.filter) : null;
  request.usedViews = [...new Set([...(request.usedViews ?? []), ...views])];
  const narrowed = narrowedRetriever(retriever, {
    views,
    filter: config.filter ?? undefined,
    patience: config.shedAfterMs === 0 ? undefined : new RequestPatience(config.shedAfterMs),
  });
  return hookedRetriever(request, narrowed, config, search);
}

/** The header of a reply that identifies what the answer depends on, apart from the request. */
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
