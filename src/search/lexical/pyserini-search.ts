import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../calls/query-outcome.ts';
import type { HitsRequest, LexicalHits, SearchTexts } from './lexical-hits.ts';
import { comparePyserini, pyseriniScores, type Ranked } from './pyserini-order.ts';

/** Hits that a search asks for beyond k, to find the end of most ties at once. */
const SPARE_HITS = 32;
/** Factor by which a search goes deeper while it has not found the end of a tie. */
const DEPTH_FACTOR = 4;
/** Most rows with the score of the k-th hit that are compared by id. */
const MAX_TIED = 100_000;
/** Documents read at once of a long tie, so that they are never all in memory. */
const DOCUMENTS_AT_ONCE = 1_024;

/**
 * Searches as Pyserini does: equal scores in the order of ids, also at the cut, so that all rows with the score of the k-th hit are
 * compared; then Pyserini's rounded scores. A query with more than 100,000 such rows fails alone. Long ties of an index are compared
 * one after another, because a comparison holds more than the hits of its query.
 */
export async function searchPyserini(search: SearchTexts, request: HitsRequest): Promise<LexicalHits> {
  const { texts, k, passages, watch, signal } = request;
  const depth = Math.min(k + SPARE_HITS, Math.max(1, request.rows));
  const found = await search(texts, depth);
  const ranked = texts.map((_, q) => rankedOf(found, q, request));
  const rows = ranked.flatMap((list) => (list.complete ? list.rows : []));
  const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
  const lists: (readonly Hit[] | TrawlError)[] = [];
  let next = 0;
  for (const [q, list] of ranked.entries()) {
    if (list.complete) {
      const hits = list.rows.map((row, i) => ({ row, score: list.scores[i]!, document: documents[next++]! }));
      const best = bestOf(await rankedHits(hits, list.scores, 0, signal), k);
      lists.push(withPyseriniScores(best.map(({ hit }) => hit)));
    } else {
      const one = { ...request, texts: [texts[q]!] };
      lists.push(await request.longTies.run(() => searchLongTie(search, one), signal));
    }
  }
  const { terms, postings, postingsRead, isExact } = found;
  return { lists, terms, postings, postingsRead, isExact };
}

interface RankedRows {
  /** The k best rows and the rows with the score of the k-th, as far as the search found them. */
  readonly rows: readonly number[];
  readonly scores: readonly number[];
  /** Whether no other row has the score of the k-th. */
  readonly complete: boolean;
}

function rankedOf(
  { counts, rows, scores }: LexicalResult,
  q: number,
  { k, rows: rowsOfIndex }: Pick<HitsRequest, 'k' | 'rows'>,
): RankedRows {
  const depth = rows.length / counts.length;
  const count = counts[q]!;
  const at = q * depth;
  let end = Math.min(k, count);
  while (end < count && scores[at + end] === scores[at + k - 1]) end++;
  return {
    rows: [...rows.subarray(at, at + end)],
    scores: [...scores.subarray(at, at + end)],
    complete: end < count || count < depth || depth >= rowsOfIndex,
  };
}

/** The hits of one query whose tie at the cut is longer than the usual search. */
async function searchLongTie(search: SearchTexts, request: HitsRequest): Promise<readonly Hit[] | TrawlError> {
  const { texts, k, passages, watch, signal } = request;
  let ranked: RankedRows;
  for (let depth = k + SPARE_HITS; ; ) {
    if (depth >= k + MAX_TIED) return tooManyTied(k);
    depth = Math.min(DEPTH_FACTOR * depth, k + MAX_TIED);
    ranked = rankedOf(await search(texts, Math.min(depth, request.rows)), 0, request);
    if (ranked.complete) break;
  }
  const { rows, scores } = ranked;
  let best: readonly RankedHit[] = [];
  for (let start = 0; start < rows.length; start += DOCUMENTS_AT_ONCE) {
    const some = rows.slice(start, start + DOCUMENTS_AT_ONCE);
    const documents = await watch.time('fetch', () => passages.getMany(some, signal));
    const hits = some.map((row, i) => ({ row, score: scores[start + i]!, document: documents[i]! }));
    best = bestOf([...best, ...(await rankedHits(hits, scores, start, signal))], k);
  }
  return withPyseriniScores(best.map(({ hit }) => hit));
}

interface RankedHit extends Ranked {
  readonly hit: Hit;
}

function bestOf(hits: readonly RankedHit[], k: number): readonly RankedHit[] {
  return hits.toSorted(comparePyserini).slice(0, k);
}

/**
 * Parses the ids of hits where they decide: where the hit before or after has the same score.
 *
 * @param scores of all hits of the query, of which `hits` begin at `start`.
 */
async function rankedHits(
  hits: readonly Hit[],
  scores: readonly number[],
  start: number,
  signal: AbortSignal | undefined,
): Promise<RankedHit[]> {
  const slice = new TimeSlice(signal);
  const ranked: RankedHit[] = [];
  for (const [i, hit] of hits.entries()) {
    const { row, score } = hit;
    const isTied = score === scores[start + i - 1] || score === scores[start + i + 1];
    ranked.push({ row, score, id: isTied ? documentFields(hit.document).id : undefined, hit });
    if (slice.isOver) await slice.yield();
  }
  return ranked;
}

function withPyseriniScores(hits: readonly Hit[]): readonly Hit[] {
  const scores = pyseriniScores(hits.map(({ score }) => score));
  return hits.map((hit, i) => ({ ...hit, score: scores[i]! }));
}

function tooManyTied(k: number): TrawlError {
  return new TrawlError(
    'NOT_SUPPORTED',
    `More than ${MAX_TIED} passages have the score of hit ${k}; the order pyserini compares at most that many by id. ` +
      'Use the order row, another k, or a query with rarer words.',
    { details: { k, maxTied: MAX_TIED } },
  );
}
