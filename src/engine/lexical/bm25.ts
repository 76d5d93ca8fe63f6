import type { LexicalField } from './lexical-settings.ts';

export interface Bm25Parameters {
  readonly k1: number;
  readonly b: number;
  /** Multiply scores by k1 + 1, as Elasticsearch does and Lucene does not since version 8. */
  readonly k1Factor: boolean;
}

/**
 * Parameters that reproduce the scores of other systems:
 * - `lucene`: Lucene's BM25Similarity with the default k1 and b of Anserini and Pyserini (Lucene's own are 1.2 and 0.75);
 * - `elasticsearch`: Elasticsearch's k1 and b, and its factor k1 + 1.
 */
export const BM25_PROFILES = {
  lucene: { k1: 0.9, b: 0.4, k1Factor: false },
  elasticsearch: { k1: 1.2, b: 0.75, k1Factor: true },
} as const satisfies Record<string, Bm25Parameters>;
export type Bm25Profile = keyof typeof BM25_PROFILES;

export const DEFAULT_BM25: Bm25Parameters = BM25_PROFILES.lucene;

/** How the fields of an index are ranked together: the best field of a passage gives its score. */
export interface FieldRanking {
  /** Multiplies the scores in a field. 0: the field is not searched. Default: 1. */
  readonly weights?: Readonly<Partial<Record<LexicalField, number>>>;
  /** Share of the scores in the other fields that is added, from 0 to 1. Default: 0. With 1 the scores are summed. */
  readonly tieBreaker?: number;
}

/** Everything that a BM25 search can choose. */
export interface Bm25Ranking extends Bm25Parameters, FieldRanking {}

/** Counts over the live rows of an index, which every score depends on. */
export interface FieldCounts {
  /** Rows with at least one token. */
  readonly documents: number;
  readonly tokens: number;
}

const { fround } = Math;

/**
 * Encodes a passage's length in one byte, as Lucene's SmallFloat.intToByte4 does: exact below 40 tokens; above, the length
 * minus 24 is rounded down to four significant bits.
 */
export function lengthCode(tokens: number): number {
  if (tokens < 40) return tokens;
  const above = tokens - 24;
  const shift = Math.floor(Math.log2(above)) - 3;
  return 24 + (8 * (shift + 1) + (Math.floor(above / 2 ** shift) % 8));
}

/** Decodes a length code: the rounded length in tokens. */
export function decodeLength(code: number): number {
  if (code < 40) return code;
  const above = code - 24;
  return 24 + ((above % 8) + 8) * 2 ** (Math.floor(above / 8) - 1);
}

/** 1 / (k1 · (1 − b + b · length / average length)) for each length code, in float32. */
export function inverseNorms({ k1, b }: Bm25Parameters, { documents, tokens }: FieldCounts): Float32Array {
  const average = fround(tokens / documents);
  const [k, share] = [fround(k1), fround(b)];
  return Float32Array.from({ length: 256 }, (_, code) => {
    const relative = fround(fround(share * decodeLength(code)) / average);
    return fround(1 / fround(k * fround(fround(1 - share) + relative)));
  });
}

/** Upper bound of a term's score in any passage: boost · idf, times k1 + 1 with `k1Factor`. */
export function termWeight(
  { k1, k1Factor }: Bm25Parameters,
  boost: number,
  { documentFrequency, documents }: { documentFrequency: number; documents: number },
): number {
  const idf = fround(Math.log(1 + (documents - documentFrequency + 0.5) / (documentFrequency + 0.5)));
  const factor = k1Factor ? fround(fround(boost) * fround(1 + fround(k1))) : fround(boost);
  return fround(factor * idf);
}

/**
 * Score of one term in one passage, larger is better. It follows Lucene's BM25Similarity since 8.4 and rounds each operation
 * to float32. A passage's score is the float64 sum over the query's terms, rounded to float32.
 */
export function termScore(weight: number, tf: number, inverseNorm: number): number {
  return fround(weight - fround(weight / fround(1 + fround(fround(tf) * inverseNorm))));
}
