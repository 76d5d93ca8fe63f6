import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { BM25_PROFILES } from '../../engine/lexical/bm25.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';

/** Most rows that a query of words may match. The engine returns them as a list with scores, which takes memory. */
const MAX_LISTED_ROWS = 4_000_000;
/** Rows that are asked for at first. */
const FIRST_ROWS = 1 << 14;
/** Rows between two checks of the time slice. */
const ROWS_AT_ONCE = 1 << 14;

/**
 * The rows that a query tree matches. Sets of rows are combined as sets; words need a search.
 *
 * @throws TrawlError INVALID_REQUEST if a query of words matches more than `MAX_LISTED_ROWS` rows.
 */
export async function treeRows(
  query: LexicalQuery,
  lexical: Pick<LexicalFields, 'rows' | 'search'>,
  signal: AbortSignal | undefined,
): Promise<RowBitmap> {
  const { rows } = lexical;
  const combined = combinedSets(query, rows);
  if (combined !== undefined) return combined;
  const search = (k: number) =>
    lexical.search({
      queries: [{ type: 'constant-score', query }],
      k: Math.max(1, Math.min(k, rows)),
      count: Math.max(1, rows),
      parameters: BM25_PROFILES.elasticsearch,
      signal,
    });
  let found = await search(FIRST_ROWS);
  const total = found.totals?.[0] ?? 0;
  if (total > MAX_LISTED_ROWS) throw tooManyRows(total);
  if (total > found.counts[0]!) found = await search(total);
  const set = new RowBitmap(rows);
  const slice = new TimeSlice(signal);
  for (let i = 0; i < found.counts[0]!; i++) {
    if (i % ROWS_AT_ONCE === 0 && slice.isOver) await slice.yield();
    set.add(found.rows[i]!);
  }
  return set;
}

/** The rows of a tree that has only sets; undefined if it has words. */
function combinedSets(query: LexicalQuery, rows: number): RowBitmap | undefined {
  switch (query.type) {
    case 'rows':
      return query.rows;
    case 'match-none':
      return new RowBitmap(rows);
    case 'match-all':
      return new RowBitmap(rows).complement();
    case 'constant-score':
      return combinedSets(query.query, rows);
    case 'bool': {
      const { must = [], filter = [], mustNot = [], should = [], minimumShouldMatch = 0 } = query;
      const required = [...must, ...filter];
      if (required.length === 0 || (should.length > 0 && minimumShouldMatch > 0)) return undefined;
      let result: RowBitmap | undefined;
      for (const [i, clause] of [...required, ...mustNot].entries()) {
        const found = combinedSets(clause, rows);
        if (found === undefined) return undefined;
        const kept = i < required.length ? found : found.complement();
        result = result === undefined ? kept : result.intersection(kept);
      }
      return result;
    }
    default:
      return undefined;
  }
}

function tooManyRows(total: number): TrawlError {
  return new TrawlError(
    'INVALID_REQUEST',
    `The words of a filter match ${total} passages; a filter of words may match at most ${MAX_LISTED_ROWS}. Filter by columns, which have no limit.`,
    { details: { limit: MAX_LISTED_ROWS } },
  );
}
