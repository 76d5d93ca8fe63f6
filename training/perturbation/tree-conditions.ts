import type { LexicalQuery } from '../../src/engine/lexical/lexical-query.ts';
import type { TreeCall } from '../../src/search/calls/tree-call.ts';

/**
 * What a query tree demands of a passage beside its words: its filters and what must not match. A distractor need not have the words of a
 * search, but it must not leave the filters of the client. Undefined if there are none.
 */
export function treeConditions({ query }: Pick<TreeCall, 'query'>): LexicalQuery | undefined {
  const filter = conditionsOf(query);
  return filter.length === 0 ? undefined : { type: 'bool', filter };
}

function conditionsOf(query: LexicalQuery): readonly LexicalQuery[] {
  switch (query.type) {
    case 'bool': {
      const { must = [], should = [], filter = [], mustNot = [], minimumShouldMatch = 0 } = query;
      const excluded = { type: 'bool', filter: [{ type: 'match-all' }], mustNot } as const;
      const least = Math.max(minimumShouldMatch, must.length + filter.length === 0 ? 1 : 0);
      return [
        ...filter,
        ...must.flatMap(conditionsOf),
        ...alternatives(should, least),
        ...(mustNot.length === 0 ? [] : [excluded]),
      ];
    }
    case 'dis-max':
      return alternatives(query.queries, 1);
    case 'constant-score':
      return [query.query];
    // Sets with scores are the nearest passages of a vector: they are what was searched for, among the rows of its filter.
    case 'rows':
      if (query.scores === undefined) return [query];
      return query.among === undefined ? [] : [{ type: 'rows', rows: query.among }];
    case 'match-none':
      return [query];
    default:
      return [];
  }
}

/** What holds for a passage that matches at least `least` of the queries. */
function alternatives(queries: readonly LexicalQuery[], least: number): readonly LexicalQuery[] {
  const conditions = queries.map(conditionsOf).filter((of) => of.length > 0);
  // The queries without conditions can be as many as are needed.
  const needed = least - (queries.length - conditions.length);
  if (needed <= 0) return [];
  const should = conditions.map((filter) => ({ type: 'bool', filter }) as const);
  return [{ type: 'bool', should, minimumShouldMatch: needed }];
}
