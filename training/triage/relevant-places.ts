import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { checkScoresFit } from '../../src/engine/vectors/search-checks.ts';
import { placesPerQuery, type VectorIndex } from '../../src/engine/vectors/vector-index.ts';
import type { Retriever } from '../../src/search/retriever.ts';

/** Best scores of the sample that are looked at for each question: the tail is fitted from them. */
export const TAIL_SCORES = 30;

/** A search for the vectors of all questions, among the rows of a set; best first, equal scores by the lower row. */
export type SearchAmong = (rows: RowBitmap, k: number) => AsyncIterable<readonly ScoredRow[]>;

interface ScoredRow {
  readonly row: number;
  /** Larger is nearer. */
  readonly score: number;
}

/** Where one model has a relevant passage of a question, among the chosen and the sampled passages of a pool. */
export interface RelevantPlace {
  readonly question: number;
  /** Relevant passages of the question, ≥ 1: this one counts for one part of as many. */
  readonly ofRelevant: number;
  /** Chosen passages before it; Infinity if they are as many as the largest k. Then it is in no top-k of the whole either. */
  readonly ahead: number;
  /** Passages of the random sample before it; at most the length of the list. */
  readonly sampleAhead: number;
  /** −Infinity if `ahead` is Infinity. */
  readonly score: number;
}

export interface RelevantPlaces {
  /** Of each question, the best scores of the sample (TAIL_SCORES), best first. */
  readonly questions: readonly (readonly number[])[];
  readonly places: readonly RelevantPlace[];
  /** Passages of the sample that were looked at: a `sampleAhead` of this size means «this many or more». */
  readonly longestCount: number;
}

interface PlacesWanted {
  readonly search: SearchAmong;
  readonly chosen: RowBitmap;
  readonly sampled: RowBitmap;
  /** Of each question, the rows of each relevant passage. Rows that are not in `chosen` are not found. */
  readonly relevant: readonly (readonly (readonly number[])[])[];
  readonly maxK: number;
}

/** The places of all relevant passages. Of a passage with several rows, the best row counts. */
export async function relevantPlaces({
  search,
  chosen,
  sampled,
  relevant,
  maxK,
}: PlacesWanted): Promise<RelevantPlaces> {
  const questions: (readonly number[])[] = [];
  const places: RelevantPlace[] = [];
  const sampleDepth = Math.max(maxK, TAIL_SCORES);
  const samples = sampled.count() === 0 ? undefined : search(sampled, sampleDepth)[Symbol.asyncIterator]();
  for await (const list of search(chosen, maxK)) {
    const next = await samples?.next();
    const sample = next === undefined || next.done === true ? [] : next.value;
    const passages = relevant[questions.length]!;
    for (const rows of passages) {
      const ahead = list.findIndex(({ row }) => rows.includes(row));
      const own = list[ahead];
      places.push({
        question: questions.length,
        ofRelevant: passages.length,
        ahead: own === undefined ? Number.POSITIVE_INFINITY : ahead,
        sampleAhead: own === undefined ? 0 : sample.filter((other) => isBefore(other, own)).length,
        score: own?.score ?? Number.NEGATIVE_INFINITY,
      });
    }
    questions.push(sample.slice(0, TAIL_SCORES).map(({ score }) => score));
  }
  return { questions, places, longestCount: sampleDepth };
}

function isBefore(one: ScoredRow, other: ScoredRow): boolean {
  return one.score > other.score || (one.score === other.score && one.row < other.row);
}

const BATCH_QUERIES = 256;

/** Searches the vectors of an engine. `queries`: row-major, one row for each question. */
export function engineSearch(engine: VectorIndex, queries: Float32Array, signal: AbortSignal): SearchAmong {
  const { dimension } = engine;
  const count = queries.length / dimension;
  return async function* (filter, most): AsyncGenerator<readonly ScoredRow[], void> {
    const k = Math.min(most, Math.max(1, engine.rows));
    for (let start = 0; start < count; start += BATCH_QUERIES) {
      const part = queries.slice(start * dimension, (start + BATCH_QUERIES) * dimension);
      const found = checkScoresFit(
        await engine.search({ queries: part, count: part.length / dimension, k, filter, signal }),
      );
      const places = placesPerQuery(found);
      for (let q = 0; q < part.length / dimension; q++) {
        yield Array.from({ length: found.counts[q]! }, (_, i) => ({
          row: found.rows[q * places + i]!,
          score: found.scores[q * places + i]!,
        }));
      }
    }
  };
}

/** Searches the index of a retriever with the vectors of its own encoder. */
export function retrieverSearch(
  retriever: Retriever,
  vectors: readonly Float32Array[],
  signal: AbortSignal,
): SearchAmong {
  return async function* (rows: RowBitmap, k: number): AsyncGenerator<readonly ScoredRow[], void> {
    for (let start = 0; start < vectors.length; start += BATCH_QUERIES) {
      // The retriever's queue makes batches of them.
      const results = await Promise.all(
        vectors.slice(start, start + BATCH_QUERIES).map((vector) => retriever.nearest({ vector, k, rows, signal })),
      );
      for (const { nearest } of results) yield nearest;
    }
  };
}
