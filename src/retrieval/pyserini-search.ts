import { TrawlError } from '../errors.ts';
import type { LexicalResult } from '../lexical-index/lexical-index.ts';
import { documentFields } from '../passages/document-fields.ts';
import { TimeSlice } from '../time-slice.ts';
import type { HitsRequest, LexicalHits, SearchTexts } from './lexical-hits.ts';
import { comparePyserini, pyseriniScores } from './pyserini-order.ts';
import type { Hit } from './retriever.ts';

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
 * compared; then Pyserini's rounded scores. A query with more than 100,000 such rows fails alone.
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
      lists.push(withPyseriniScores((await sortTies(hits, signal)).slice(0, k)));
    } else {
      lists.push(await searchLongTie(search, { ...request, texts: [texts[q]!] }));
    }
  }
  const { terms, postings, postingsRead } = found;
  return { lists, terms, postings, postingsRead };
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
  let best: Hit[] = [];
  for (let start = 0; start < rows.length; start += DOCUMENTS_AT_ONCE) {
    const some = rows.slice(start, start + DOCUMENTS_AT_ONCE);
    const documents = await watch.time('fetch', () => passages.getMany(some, signal));
    const hits = some.map((row, i) => ({ row, score: scores[start + i]!, document: documents[i]! }));
    best = (await sortTies([...best, ...hits], signal)).slice(0, k);
  }
  return withPyseriniScores(best);
}

/** Orders hits, which are sorted by score, by their ids where scores are equal. */
async function sortTies(hits: readonly Hit[], signal: AbortSignal | undefined): Promise<Hit[]> {
  const slice = new TimeSlice(signal);
  const ranked: { row: number; score: number; id: string | undefined; hit: Hit }[] = [];
  for (const [i, hit] of hits.entries()) {
    const isTied = hit.score === hits[i - 1]?.score || hit.score === hits[i + 1]?.score;
    // Ids are parsed only where they decide.
    const id = isTied ? documentFields(hit.document).id : undefined;
    ranked.push({ row: hit.row, score: hit.score, id, hit });
    if (slice.isOver) await slice.yield();
  }
  return ranked.sort(comparePyserini).map(({ hit }) => hit);
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
