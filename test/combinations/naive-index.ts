import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { analyser } from '../../src/engine/lexical/analysis/analysers.ts';
import {
  BM25_PROFILES,
  type Bm25Parameters,
  type Bm25Profile,
  inverseNorms,
  lengthCode,
  termScore,
  termWeight,
} from '../../src/engine/lexical/bm25.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';

/** A passage as the test wrote it to the corpus. */
export interface CorpusRow {
  readonly id: string | number;
  readonly contents: string;
  readonly [column: string]: unknown;
}

export interface Scored {
  readonly row: number;
  readonly score: number;
}

interface Passage {
  readonly row: number;
  readonly vector: Float32Array;
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

export interface GivenBm25 {
  readonly k1?: number;
  readonly b?: number;
  readonly profile?: Bm25Profile;
}

/** Bytes before the first vector of a FAISS flat file. */
const VECTORS_FROM = 45;

/**
 * An index for searches that score every passage: its vectors are read from its files, its words from the corpus. The rows of the
 * index are those of the corpus.
 */
export class NaiveIndex {
  readonly name: string;
  readonly corpus: readonly CorpusRow[];
  readonly #deleted: ReadonlySet<number>;
  readonly #live: readonly Passage[];

  constructor(name: string, folder: string, corpus: readonly CorpusRow[], deletedIds: readonly string[]) {
    this.name = name;
    this.corpus = corpus;
    this.#deleted = new Set(corpus.flatMap(({ id }, row) => (deletedIds.includes(String(id)) ? [row] : [])));
    const vectors = vectorsOf(folder);
    const analyse = analyser('english');
    this.#live = corpus
      .map(({ contents }, row) => {
        const terms = analyse(contents);
        const counts = new Map<string, number>();
        for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1);
        return { row, vector: vectors[row]!, counts, length: terms.length };
      })
      .filter(({ row }) => !this.#deleted.has(row));
  }

  /** All passages that are not deleted, by the inner product in float64; the scores are rounded to float32. */
  dense(query: Float32Array): Scored[] {
    const scored = this.#live.map(({ row, vector }) => {
      let sum = 0;
      for (let j = 0; j < query.length; j++) sum += query[j]! * vector[j]!;
      return { row, score: sum };
    });
    return inOrder(scored).map(({ row, score }) => ({ row, score: Math.fround(score) }));
  }

  /** The passages with a term of the text, by BM25. */
  bm25(text: string, { profile = 'lucene', ...given }: GivenBm25): Scored[] {
    const parameters: Bm25Parameters = { ...BM25_PROFILES[profile], ...given };
    const documents = this.#live.filter(({ length }) => length > 0).length;
    const tokens = this.#live.reduce((sum, { length }) => sum + length, 0);
    const inverse = inverseNorms(parameters, { documents, tokens });
    const query = analyser('english')(text);
    const scored: Scored[] = [];
    const weights = new Map(
      [...new Set(query)].map((term) => {
        const boost = query.filter((other) => other === term).length;
        const documentFrequency = this.#live.filter(({ counts }) => counts.has(term)).length;
        return [term, termWeight(parameters, boost, { documentFrequency, documents })];
      }),
    );
    for (const { row, counts, length } of this.#live) {
      let sum: number | undefined;
      for (const [term, weight] of weights) {
        const tf = counts.get(term);
        if (tf !== undefined) sum = (sum ?? 0) + termScore(weight, tf, inverse[lengthCode(length)]!);
      }
      if (sum !== undefined) scored.push({ row, score: Math.fround(sum) });
    }
    return inOrder(scored);
  }
}

/** Larger scores first, equal ones by row. */
export function inOrder<T extends Scored>(scored: readonly T[]): T[] {
  return [...scored].sort((a, b) => b.score - a.score || a.row - b.row);
}

function vectorsOf(folder: string): Float32Array[] {
  const { dimension, shards } = readIndexManifest(folder);
  return shards.flatMap(({ path, rows }) => {
    const bytes = readFileSync(join(folder, path, 'vectors.faiss')).subarray(VECTORS_FROM);
    return Array.from({ length: rows }, (_, row) =>
      Float32Array.from({ length: dimension }, (_, j) => bytes.readFloatLE(4 * (row * dimension + j))),
    );
  });
}
