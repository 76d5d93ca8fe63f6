import type { RowBitmap } from '../../src/engine/row-bitmap.ts';

/** A search for the vectors of all questions, among the rows of a set; best first, equal scores by the lower row. */
export type SearchAmong = (rows: RowBitmap, k: number) => AsyncIterable<readonly ScoredRow[]>;

export interface ScoredRow {
  readonly row: number;
  /** Larger is nearer. */
  readonly score: number;
}

/** Where one model has a relevant passage of a question, among the chosen and the sampled passages of a pool. */
export interface RelevantPlace {
  /** Place of the question, from 0. */
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
  /** Of each question, the best scores of the sample, best first. */
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
  /** The largest k for which recall is estimated. */
  readonly maxK: number;
  /** Scores of the sample that are wanted of each question. */
  readonly sampleScores: number;
}

/** The places of all relevant passages. Of a passage with several rows, the best row counts. */
export async function relevantPlaces({
  search,
  chosen,
  sampled,
  relevant,
  maxK,
  sampleScores,
}: PlacesWanted): Promise<RelevantPlaces> {
  const questions: (readonly number[])[] = [];
  const places: RelevantPlace[] = [];
  const sampleDepth = Math.max(maxK, sampleScores);
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
    questions.push(sample.slice(0, sampleScores).map(({ score }) => score));
  }
  return { questions, places, longestCount: sampleDepth };
}

function isBefore(one: ScoredRow, other: ScoredRow): boolean {
  return one.score > other.score || (one.score === other.score && one.row < other.row);
}
