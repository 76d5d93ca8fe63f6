import type { LexicalQuery } from '../lexical-index/lexical-query.ts';
import type { TreeCall } from '../retrieval/calls/tree-call.ts';

/**
 * What a query tree demands of a passage beside its words: its filters and what must not match. A distractor need not have the words of a
 * search, but it must not leave the filters of the client. Undefined if there are none.
 */
export function treeConditions({ query, among = [] }: Pick<TreeCall, 'query' | 'among'>): LexicalQuery | undefined {
  const filter = [...conditionsOf(query), ...among.map((rows) => ({ type: 'rows', rows }) as const)];
  return filter.length === 0 ? undefined : { type: 'bool', filter };
}

function conditionsOf(query: LexicalQuery): readonly LexicalQuery[] {
  switch (query.type) {
    case 'bool': {
      const { must = [], filter = [], mustNot = [] } = query;
      const excluded = { type: 'bool', filter: [{ type: 'match-all' }], mustNot } as const;
      return [...filter, ...must.flatMap(conditionsOf), ...(mustNot.length === 0 ? [] : [excluded])];
    }
    case 'constant-score':
      return [query.query];
    // Sets with scores are the nearest passages of a vector: they are what was searched for.
    case 'rows':
      return query.scores === undefined ? [query] : [];
    case 'match-none':
      return [query];
    default:
      return [];
  }
}
