import type { LexicalQuery, RowsQuery } from '../../engine/lexical/lexical-query.ts';
import {
  compareOrder,
  type OrderValue,
  type TreeCall,
  type TreeHit,
  type TreeOrder,
  type TreeResult,
} from '../calls/tree-call.ts';
import type { GroupMember } from './group-info.ts';

/** The query tree for one index of a group: sets of rows of the group become sets of rows of the index. */
export function treeOfMember(query: LexicalQuery, member: GroupMember): LexicalQuery {
  const each = (queries: readonly LexicalQuery[] | undefined) => queries?.map((child) => treeOfMember(child, member));
  switch (query.type) {
    case 'rows':
      return rowsOfMember(query, member);
    case 'bool': {
      const { must, should, filter, mustNot } = query;
      return { ...query, must: each(must), should: each(should), filter: each(filter), mustNot: each(mustNot) };
    }
    case 'dis-max':
      return { ...query, queries: query.queries.map((child) => treeOfMember(child, member)) };
    case 'constant-score':
      return { ...query, query: treeOfMember(query.query, member) };
    default:
      return query;
  }
}

function rowsOfMember(query: RowsQuery, { firstRow, retriever }: GroupMember): RowsQuery {
  const rows = query.rows.slice(firstRow, retriever.info.rows);
  if (query.scores === undefined) return { ...query, rows };
  const among = query.among?.slice(firstRow, retriever.info.rows);
  // Scores are in the order of the rows, so the scores of one index are next to each other.
  const first = query.rows.slice(0, firstRow).count();
  return { ...query, rows, among, scores: query.scores.slice(first, first + rows.count()) };
}

/**
 * The results of all indexes as one, merged by their order, or by score as Elasticsearch merges indexes: a term's weight is that of its
 * index. Equal hits are ordered by the index and then by row. `results`: each index's first `from + size` hits.
 */
export function mergeTrees(
  members: readonly GroupMember[],
  results: readonly TreeResult[],
  { from, size, count, order }: Pick<TreeCall, 'from' | 'size' | 'count' | 'order'>,
): Omit<TreeResult, 'timings'> {
  const hits = results.flatMap((result, i) => {
    const { name: index, firstRow } = members[i]!;
    return result.hits.map((hit): TreeHit => {
      const { row, score, orderValues } = hit;
      const moved = { ...hit, row: firstRow + row, source: { index, row, score } };
      if (order === undefined || orderValues === undefined) return moved;
      return { ...moved, orderValues: movedValues(orderValues, order, firstRow) };
    });
  });
  const compare = (a: TreeHit, b: TreeHit): number =>
    order === undefined ? b.score - a.score : compareOrder(order, a.orderValues ?? [], b.orderValues ?? []);
  const best = results.flatMap((result) => result.best ?? []);
  const total = results.reduce((sum, result) => sum + result.total, 0);
  return {
    hits: hits.sort((a, b) => compare(a, b) || a.row - b.row).slice(from, from + size),
    best: best.length === 0 ? null : Math.max(...best),
    total: Math.min(total, count + 1),
  };
}

/** Order values whose row numbers are moved by a number of rows, from an index to the group or back. */
export function movedValues(
  values: readonly OrderValue[],
  order: readonly TreeOrder[],
  rows: number,
): readonly OrderValue[] {
  return values.map((value, i) => (order[i]?.by === 'row' && typeof value === 'number' ? value + rows : value));
}
