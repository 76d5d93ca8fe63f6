import { TrawlError } from '../src/base/errors.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import type { RankedPassage, Run } from './run.ts';

/**
 * Reads a TREC run: lines `qid Q0 docid rank score tag`, separated by white space. Passages are ordered by score, the larger first, and
 * equal scores by rank; trec_eval orders equal scores by id.
 *
 * @throws TrawlError CORPUS_BAD_LINE for a malformed line, a passage that a query has twice and a file without lines;
 * CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function readRun(file: string): Promise<Run> {
  const lists = new Map<string, Map<string, { readonly rank: number; readonly score: number }>>();
  for await (const { number, text } of readTextLines(file)) {
    const [queryId, , id, rank, score, tag, ...rest] = text.trim().split(/\s+/);
    if (queryId === undefined || id === undefined || tag === undefined || rest.length > 0)
      throw lineError(file, number, 'expected the six fields of a TREC run: qid, Q0, docid, rank, score, tag');
    if (!/^\d{1,9}$/.test(rank!)) throw lineError(file, number, `the rank is ${rank}; it must be a whole number`);
    if (!Number.isFinite(Number(score))) throw lineError(file, number, `the score is ${score}; it must be a number`);
    const list = lists.get(queryId) ?? new Map();
    if (list.has(id)) throw lineError(file, number, `an earlier line has the passage ${id} for query ${queryId}, too`);
    list.set(id, { rank: Number(rank), score: Number(score) });
    lists.set(queryId, list);
  }
  if (lists.size === 0)
    throw new TrawlError(
      'CORPUS_BAD_LINE',
      `${file} has no lines. Expected a TREC run, such as trawl eval --run writes.`,
      { details: { path: file } },
    );
  return new Map(
    Array.from(lists, ([queryId, list]) => [
      queryId,
      [...list]
        .sort(([, a], [, b]) => b.score - a.score || a.rank - b.rank)
        .map(([id, { score }]): RankedPassage => ({ id, score })),
    ]),
  );
}
