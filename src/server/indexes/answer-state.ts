import { createHash } from 'node:crypto';
import { packageVersion } from '../../base/package-root.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';

/** The header of a reply that identifies what the answer depends on, apart from the request. */
export const STATE_HEADER = 'x-trawl-state';

/** A hash that changes with Trawl's version, the index, its encoder and reranker, the passages of the views, and the address's filter. */
export function answerState(info: RetrieverInfo, views: readonly string[], filter: Filter | null): string {
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
