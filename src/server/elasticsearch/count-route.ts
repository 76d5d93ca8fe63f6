import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from './elasticsearch-route.ts';
import { JsonBody } from './json-nodes.ts';
import { objectOf } from './json-values.ts';
import { shardsJson } from './search-reply.ts';
import { parseSearch, refuseUnknownParameters, type SearchRequest } from './search-request.ts';
import { requestedIndexes, searchIndexes } from './search-route.ts';

export const COUNT_ROUTES: readonly ElasticsearchRoute[] = ['/_count', '/:index/_count'].map((url) => ({
  method: ['GET', 'POST'],
  url,
  handle: count,
}));

const PARAMETERS = [
  'allow_no_indices',
  'expand_wildcards',
  'ignore_throttled',
  'ignore_unavailable',
  'index',
  'pretty',
  'human',
  'error_trace',
  'preference',
  'routing',
];

/** Counts the passages that a query matches, always exactly. */
async function count(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { request, body, parameters } = asked;
  refuseUnknownParameters(parameters, PARAMETERS, request.url.split('?')[0]!);
  const { total, indexes, timings } = await searchIndexes(asked, countOf(body), {
    names: requestedIndexes(asked),
    ignoreUnavailable: parameters.ignore_unavailable === 'true',
  });
  return {
    pieces: [`{"count":${total},"_shards":${shardsJson(indexes)}}`],
    searches: { count: 1, timings },
  };
}

/** A count's body has only `query`. */
function countOf(text: string): SearchRequest {
  if (text.trim() !== '') {
    const body = new JsonBody(text);
    for (const [name, node] of objectOf(body, body.root, 'a count').members) {
      if (name !== 'query') throw body.fault(node, `request does not support [${name.slice(0, 100)}]`);
    }
  }
  return { ...parseSearch(text, {}, '/_count'), size: 0, trackTotal: Number.POSITIVE_INFINITY };
}
