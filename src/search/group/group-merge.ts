import { TrawlError } from '../../base/errors.ts';
import type { LexicalQuery, RowsQuery } from '../../engine/lexical/lexical-query.ts';
import { byScore, type FailedIndex, type Hit, type QueryOutcome, type Reranking } from '../calls/query-outcome.ts';
import {
  compareOrder,
  type OrderValue,
  type TreeCall,
  type TreeHit,
  type TreeOrder,
  type TreeResult,
} from '../calls/tree-call.ts';
import type { GroupMember } from './group-info.ts';

/** The constant of reciprocal rank fusion, as for the lists of several queries. */
const RRF_K = 60;

/**
 * Merges the outcomes of a query, one per index, by the scores of the hits before rounding, or by their ranks. By rank, a hit's score is
 * 1 / (60 + rank). Equal scores are ordered by the index, in the order of the group, and then as in the list of the index.
 */
export function mergeOutcomes(
  members: readonly GroupMember[],
  outcomes: readonly QueryOutcome[],
  { k, comparable, allowPartial }: { readonly k: number; readonly comparable: boolean; readonly allowPartial: boolean },
): QueryOutcome {
  const answers = outcomes.flatMap((answer, i) => (answer.ok ? [{ member: members[i]!, answer }] : []));
  const failed = outcomes.flatMap((outcome, i) =>
    outcome.ok ? [] : [{ index: members[i]!.name, error: outcome.error }],
  );
  const [first] = answers;
  if (first === undefined || (failed.length > 0 && !allowPartial)) {
    return { ok: false, error: errorOfIndex(failed[0]!) };
  }
  const useScores = comparable && answers.every(({ answer }) => answer.rerank?.ok !== false);
  const hits = answers
    .flatMap(({ member, answer }) => answer.hits.map((hit, i) => groupHit(member, hit, i + 1, useScores)))
    .sort(byScore)
    .slice(0, k);
  const rescored = answers.map(({ answer }) => answer.certificate.rescored);
  const rerank = mergedReranking(answers.flatMap(({ answer }) => answer.rerank ?? []));
  const scales = answers.flatMap(({ member, answer }) =>
    (answer.scales ?? []).map((each) => ({ ...each, index: member.name })),
  );
  const { tokens, truncated, text, cut, vector, certificate } = first.answer;
  return {
    ok: true,
    hits,
    tokens,
    truncated,
    text,
    cut,
    vector,
    certificate: {
      ...certificate,
      exact: answers.every(({ answer }) => answer.certificate.exact),
      rescored: rescored.includes(null) ? null : rescored.reduce((sum: number, rows) => sum + rows!, 0),
    },
    scales: scales.length === 0 ? undefined : scales,
    rerank,
    failedIndexes: failed.length === 0 ? undefined : failed,
    short: answers.find(({ answer }) => answer.short !== undefined)?.answer.short,
  };
}

export function errorOfIndex({ index, error }: FailedIndex): TrawlError {
  return new TrawlError(error.code, `Index ${index}: ${error.message}`, {
    details: { ...error.details, index },
    cause: error,
  });
}

function groupHit({ name, firstRow }: GroupMember, hit: Hit, rank: number, useScores: boolean): Hit {
  const { unrounded, ...rest } = hit;
  const moved = { ...rest, row: firstRow + hit.row, source: { index: name, row: hit.row, score: hit.score } };
  if (!useScores) return { ...moved, score: Math.fround(1 / (RRF_K + rank)) };
  return unrounded === undefined ? moved : { ...moved, unrounded };
}

/** The reranking of all indexes together, or the first failure. */
function mergedReranking(rerankings: readonly Reranking[]): Reranking | undefined {
  const [first] = rerankings;
  const failed = rerankings.find(({ ok }) => !ok);
  if (first === undefined || failed !== undefined) return failed;
  const sum = (field: 'passages' | 'truncated'): number =>
    rerankings.reduce((total, each) => total + (each.ok ? each[field] : 0), 0);
  return { ...first, passages: sum('passages'), truncated: sum('truncated') } as Reranking;
}

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
 * The results of all indexes as one, merged by their order, or by score as Elasticsearch merges indexes: a term has the weight that it
 * has in its index. Equal hits are ordered by the index and then by row. `results`: each index's first `from + size` hits.
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
