import { illegalArgument } from '../elasticsearch-error.ts';
import type { JsonBody, JsonNode, ObjectNode } from '../json-nodes.ts';
import { integerOf, itemsOf, numberOf, textOf, tokenOf } from '../json-values.ts';
import { type Clause, readParameters } from './clause.ts';
import type { DslKnn, DslQuery } from './dsl-query.ts';

/** Elasticsearch's limit. The search is exact, so `num_candidates` changes nothing here. */
const MAX_CANDIDATES = 10_000;

/** `knn` as a query: `{"field": "vector", "query_vector": […], "k": 10}`. */
export function parseKnnClause({ body, node, parse }: Clause): DslQuery {
  return parseKnn(body, node, parse);
}

/** `knn` beside `query`, one or several. */
export function parseKnnSearches(
  body: JsonBody,
  node: JsonNode,
  parse: (node: JsonNode) => DslQuery,
): readonly (DslKnn & { readonly boost: number })[] {
  return itemsOf(node).map((item) => {
    if (item.type !== 'object')
      throw body.fault(item, `[knn] malformed, expected START_OBJECT but found ${tokenOf(item)}`);
    return parseKnn(body, item, parse);
  });
}

function parseKnn(
  body: JsonBody,
  node: ObjectNode,
  parse: (node: JsonNode) => DslQuery,
): DslKnn & { readonly boost: number } {
  let field: string | undefined;
  let vector: readonly number[] | undefined;
  let k: number | undefined;
  let candidates: number | undefined;
  let similarity: number | undefined;
  let filter: readonly DslQuery[] = [];
  const boost = readParameters({ body, name: 'knn' }, node, {
    field: (value) => {
      field = textOf(body, value, '[field]');
    },
    query_vector: (value) => {
      vector = vectorOf(body, value);
    },
    query_vector_builder: (value) => {
      throw body.fault(value, '[knn] [query_vector_builder] is not supported by this server: send [query_vector]');
    },
    k: (value) => {
      k = integerOf(body, value, '[k]');
    },
    num_candidates: (value) => {
      candidates = integerOf(body, value, '[num_candidates]');
    },
    similarity: (value) => {
      similarity = numberOf(body, value, '[similarity]');
    },
    filter: (value) => {
      filter = itemsOf(value).map(parse);
    },
  });
  if (field === undefined) throw illegalArgument('Required [field]');
  if (vector === undefined) throw illegalArgument('either [query_vector_builder] or [query_vector] must be provided');
  if (k !== undefined && k < 1) throw illegalArgument('[k] must be greater than 0');
  if (k !== undefined && k > MAX_CANDIDATES) throw illegalArgument(`[k] cannot exceed [${MAX_CANDIDATES}]`);
  if (candidates !== undefined) {
    if (candidates < 1) throw illegalArgument('[num_candidates] must be greater than 0');
    if (k !== undefined && candidates < k) throw illegalArgument('[num_candidates] cannot be less than [k]');
    if (candidates > MAX_CANDIDATES) throw illegalArgument(`[num_candidates] cannot exceed [${MAX_CANDIDATES}]`);
  }
  return { type: 'knn', field, vector, k, similarity, filter, boost };
}

function vectorOf(body: JsonBody, node: JsonNode): readonly number[] {
  if (node.type !== 'array')
    throw body.fault(node, `[knn] [query_vector] must be an array of numbers, but is ${tokenOf(node)}`);
  return node.items.map((item) => {
    const value = numberOf(body, item, 'a value of [query_vector]');
    if (Number.isFinite(Math.fround(value))) return value;
    throw illegalArgument(`[query_vector] has the value ${value}, which is out of the range of a float`);
  });
}
