import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import { placesPerQuery } from '../../engine/vectors/vector-index.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../calls/query-outcome.ts';
import type { OneAtATime } from '../one-at-a-time.ts';
import { type Documents, foundFor } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';

/** Hits that a search asks for beyond k, to find the end of most ties at once. */
const SPARE_HITS = 32;
/** Factor by which a search goes deeper while it has not found the end of a tie. */
const DEPTH_FACTOR = 4;
/** Most rows with the score of the k-th hit that are compared by id. */
const MAX_TIED = 100_000;
/** Documents read at once of a long tie, so that they are never all in memory. */
const DOCUMENTS_AT_ONCE = 1_024;

/** Searches for texts with the ranking of a call. */
export type SearchTexts = (texts: readonly string[], k: number) => Promise<LexicalResult>;

export interface TextsToSearch {
  readonly texts: readonly string[];
  readonly k: number;
  /** Rows of the index. */
  readonly rows: number;
  readonly passages: Documents;
  /** Runs the comparisons of long ties in the index. */
  readonly longTies: OneAtATime;
  readonly watch: Stopwatch;
  readonly signal: AbortSignal | undefined;
}

/** Hits of each query, or its error, and what the search cost. */
export interface LexicalHits extends Pick<LexicalResult, 'terms' | 'postings' | 'postingsRead' | 'isExact'> {
  readonly lists: readonly (readonly Hit[] | TrawlError)[];
}

/**
 * Searches as Pyserini does: equal scores in the order of ids, then Pyserini's rounded scores. All rows with the score of the k-th hit are
 * compared, so that the cut is in that order too; a query with more than 100,000 such rows fails alone. Long ties in an index are compared
 * one after another, because a comparison holds more than the hits of its query.
 */
export async function searchPyserini(search: SearchTexts, request: TextsToSearch): Promise<LexicalHits> {
  const { texts, k, passages, watch, signal } = request;
  const depth = Math.min(k + SPARE_HITS, Math.max(1, request.rows));
  const found = await search(texts, depth);
  const ranked = texts.map((_, q) => rankedRows(found, q, request));
  const rows = ranked.flatMap((list) => (list.complete ? list.rows : []));
  const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
  const lists: (readonly Hit[] | TrawlError)[] = [];
  let next = 0;
  for (const [q, list] of ranked.entries()) {
    if (list.complete) {
      const hits = list.rows.map((row, i) => ({ row, score: list.scores[i]!, document: documents[next++]! }));
      lists.push(withPyseriniScores(best(await withIds(hits, list.scores, 0, signal), k)));
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

function rankedRows(found: LexicalResult, q: number, { k, rows: rowsOfIndex }: TextsToSearch): RankedRows {
  const { rows, scores } = foundFor(found, q);
  const depth = placesPerQuery(found);
  let end = Math.min(k, rows.length);
  while (end < rows.length && scores[end] === scores[k - 1]) end++;
  return {
    rows: [...rows.subarray(0, end)],
    scores: [...scores.subarray(0, end)],
    complete: end < rows.length || rows.length < depth || depth >= rowsOfIndex,
  };
}

/** The hits of one query whose tie at the cut is longer than the usual search. */
async function searchLongTie(search: SearchTexts, request: TextsToSearch): Promise<readonly Hit[] | TrawlError> {
  const { texts, k, passages, watch, signal } = request;
  let ranked: RankedRows;
  for (let depth = k + SPARE_HITS; ; ) {
    if (depth >= k + MAX_TIED) {
      return new TrawlError(
        'NOT_SUPPORTED',
        `More than ${MAX_TIED} passages have the score of hit ${k}; the order pyserini compares at most that many by id. ` +
          'Use the order row, another k, or a query with rarer words.',
        { details: { k, maxTied: MAX_TIED } },
      );
    }
    depth = Math.min(DEPTH_FACTOR * depth, k + MAX_TIED);
    ranked = rankedRows(await search(texts, Math.min(depth, request.rows)), 0, request);
    if (ranked.complete) break;
  }
  const { rows, scores } = ranked;
  let first: readonly RankedHit[] = [];
  for (let start = 0; start < rows.length; start += DOCUMENTS_AT_ONCE) {
    const some = rows.slice(start, start + DOCUMENTS_AT_ONCE);
    const documents = await watch.time('fetch', () => passages.getMany(some, signal));
    const hits = some.map((row, i) => ({ row, score: scores[start + i]!, document: documents[i]! }));
    first = best([...first, ...(await withIds(hits, scores, start, signal))], k);
  }
  return withPyseriniScores(first);
}

interface RankedHit {
  readonly hit: Hit;
  /** The id in UTF-8; undefined for a passage without id, and where no other hit has the same score. */
  readonly id: Buffer | undefined;
}

/** The k best hits, as Anserini's SimpleSearcher sorts them: by falling score, then by id, then by row. */
function best(hits: readonly RankedHit[], k: number): readonly RankedHit[] {
  return hits
    .toSorted((a, b) => b.hit.score - a.hit.score || compareIds(a.id, b.id) || a.hit.row - b.hit.row)
    .slice(0, k);
}

/**
 * Parses the ids of hits where they decide the order: where the hit before or after has the same score.
 *
 * @param scores of all hits of the query; `hits` begin at `start` of them.
 */
async function withIds(
  hits: readonly Hit[],
  scores: readonly number[],
  start: number,
  signal: AbortSignal | undefined,
): Promise<RankedHit[]> {
  const slice = new TimeSlice(signal);
  const ranked: RankedHit[] = [];
  for (const [i, hit] of hits.entries()) {
    const isTied = hit.score === scores[start + i - 1] || hit.score === scores[start + i + 1];
    const id = isTied ? documentFields(hit.document).id : undefined;
    ranked.push({ hit, id: id === undefined ? undefined : Buffer.from(id) });
    if (slice.isOver) await slice.yield();
  }
  return ranked;
}

function withPyseriniScores(ranked: readonly RankedHit[]): readonly Hit[] {
  const scores = pyseriniScores(ranked.map(({ hit }) => hit.score));
  return ranked.map(({ hit }, i) => ({ ...hit, score: scores[i]! }));
}

const { fround } = Math;
const TIE = fround(1e-4);
const STEP = fround(1e-6);

/**
 * The scores that Anserini reports for a ranked list of float32 scores: rounded to four decimals, in float64; then a score that is
 * at most 1e-4 below the score before it is lowered by 1e-6 times its position in that run, in float32.
 *
 * @internal
 */
export function pyseriniScores(scores: readonly number[]): number[] {
  const altered: number[] = [];
  let inRun = 0;
  for (const [i, score] of scores.entries()) {
    const rounded = fround(Math.round(score * 1e4) / 1e4);
    inRun = i === 0 || fround(altered[i - 1]! - rounded) > TIE ? 0 : inRun + 1;
    altered.push(inRun === 0 ? rounded : fround(rounded - fround(STEP * inRun)));
  }
  return altered;
}

/** Compares ids by their bytes. A passage without id comes first, as documents without a value do in Lucene. */
function compareIds(a: Buffer | undefined, b: Buffer | undefined): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return Buffer.compare(a, b);
}
