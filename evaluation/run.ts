import { TrawlError, usageError } from '../src/base/errors.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';

export interface RankedPassage {
  readonly id: string;
  /** Larger is nearer. Written to run files; the metrics use the position in the list as the rank. */
  readonly score: number;
  /** The passage without its title; only needed for `answer_hit@k` and its kin. */
  readonly text?: string;
  /** Title of the page that the passage is from; only needed for `title_recall@k` and its kin. A passage without title has no page. */
  readonly title?: string;
}

/** Query id → its results, best first. */
export type Run = ReadonlyMap<string, readonly RankedPassage[]>;

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
      `${file} has no lines. Expected a TREC run, as trawl eval --run writes it.`,
      {
        details: { path: file },
      },
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

/**
 * Formats a TREC run: lines `qid Q0 docid rank score tag`, with line ends; ranks count from 1. Of an id repeated for a query
 * only the first result is written, because trec_eval rejects duplicates.
 *
 * @param options.tag the name of the run, in the last column.
 * @throws TrawlError USAGE for a tag or id with white space, or a score that is not finite.
 */
export function* formatTrecRun(run: Run, { tag = 'trawl' }: { tag?: string } = {}): Generator<string, void> {
  checkTrecField('tag', tag);
  for (const [queryId, passages] of run) {
    checkTrecField('query id', queryId);
    const written = new Set<string>();
    for (const { id, score } of passages) {
      if (written.has(id)) continue;
      checkTrecField('passage id', id);
      if (!Number.isFinite(score)) {
        throw usageError(
          `The score of passage ${id} for query ${queryId} is ${score}; a TREC run needs a finite number.`,
        );
      }
      written.add(id);
      yield `${queryId} Q0 ${id} ${written.size} ${score} ${tag}\n`;
    }
  }
}

/** @throws TrawlError USAGE for a text that cannot be a field of a TREC run because it is empty or has white space. */
export function checkTrecField(name: 'tag' | 'query id' | 'passage id', value: string): void {
  if (/^\S+$/.test(value)) return;
  throw usageError(
    `The ${name} ${JSON.stringify(value)} cannot be written to a TREC run: fields must not be empty or have white space. ` +
      `${name === 'tag' ? 'Choose another --tag' : `Give every ${name.replace(' id', '')} an id without white space`}, or omit the run.`,
  );
}

/** The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009). */
const RRF_K = 60;

/**
 * Fuses the lists of several queries by reciprocal rank, as `fusion: "rrf"` of /v1/search: a passage scores the sum of 1 / (60 + rank)
 * over the lists that have it. Ties keep first-seen order. One list stays as it is. If a list has a passage twice, the better place
 * counts, and the other passages keep their ranks.
 */
export function fuseLists(lists: readonly (readonly RankedPassage[])[], k: number): readonly RankedPassage[] {
  const [only] = lists;
  if (lists.length === 1) return only!.slice(0, k);
  const fused = new Map<string, { readonly passage: RankedPassage; score: number }>();
  for (const list of lists) {
    const seen = new Set<string>();
    for (const [i, passage] of list.entries()) {
      if (seen.has(passage.id)) continue;
      seen.add(passage.id);
      const part = 1 / (RRF_K + i + 1);
      const known = fused.get(passage.id);
      if (known === undefined) fused.set(passage.id, { passage, score: part });
      else known.score += part;
    }
  }
  return [...fused.values()]
    .sort((a, b) => b.score - a.score)
    .slice(0, k)
    .map(({ passage, score }) => ({ ...passage, score }));
}
