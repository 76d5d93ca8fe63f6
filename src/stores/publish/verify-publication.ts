import { TrawlError } from '../../base/errors.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-index.ts';
import { bestFields } from '../../engine/lexical/lexical-query.ts';
import { openLexicalFields } from '../../engine/lexical/open-lexical.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { openEngine } from '../../engine/vectors/open-engine.ts';
import type { VectorIndex } from '../../engine/vectors/vector-index.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { IndexDirectory } from '../../search/opening/index-directory.ts';
import type { PublishedIndex } from '../published/open-stored.ts';
import type { PublishedRow } from '../published/published-row.ts';
import type { LocalRows } from './local-rows.ts';

const K = 10;

export interface VerifiedPublication {
  /** Rows whose vector, document and id were compared bit for bit. */
  readonly rows: number;
  readonly questions: number;
  /** Texts whose first hits by BM25 were compared; 0 if the store does not search words. */
  readonly texts: number;
  /** Questions with the same rows and scores; all of them if the store scores every row. */
  readonly same: number;
}

/**
 * Compares sampled rows of a published index with its folder, and the hits of questions halfway between two sampled vectors, as questions
 * lie between passages. @throws TrawlError STORE_DIFFERS with the first difference.
 */
export async function verifyPublication(
  published: PublishedIndex,
  { directory, local, sample }: { directory: IndexDirectory; local: LocalRows; sample: number },
): Promise<VerifiedPublication> {
  const rows = sampledRows(directory.manifest.rows, directory.liveRows, sample);
  if (rows.length === 0) return { rows: 0, questions: 0, texts: 0, same: 0 };
  const passages = published.openPassages();
  const vectors = published.openVectors();
  const here = await openEngine(directory.source!);
  try {
    const expected: PublishedRow[] = [];
    for (const row of rows) expected.push(...(await local.range(row, row + 1)));
    const documents = await passages.getMany(rows);
    const ids = await passages.idsOf(rows);
    for (const [i, { row, document, id }] of expected.entries()) {
      if (documents[i] !== document || ids[i] !== (id ?? `row:${row}`))
        throw differs(published, `the passage of row ${row} differs`);
    }
    const questions = vectorsBetween(expected.map(({ vector }) => vector));
    const [hitsHere, hitsThere] = await Promise.all([here, vectors].map((index) => hitsOf(index, questions)));
    const asked = expected.length;
    const same = hitsHere!.filter((hits, q) => hits === hitsThere![q]).length;
    if (same < asked && published.scoresEveryRow)
      throw differs(published, `${asked - same} of ${asked} questions have other hits than in the folder`);
    await compareVectors(published, expected);
    const texts = await compareWords(
      published,
      directory,
      expected.map(({ document }) => document),
    );
    return { rows: rows.length, questions: asked, texts, same };
  } finally {
    await Promise.all([passages.close(), vectors.close(), here.close()]);
  }
}

async function compareVectors(published: PublishedIndex, expected: readonly PublishedRow[]): Promise<void> {
  const stored = await published.vectorsOf(expected.map(({ row }) => row));
  for (const [i, { row, vector }] of expected.entries()) {
    if (!vector.every((value, j) => value === stored[i * vector.length + j]))
      throw differs(published, `the vector of row ${row} differs`);
  }
}

export function firstWords(document: string): string {
  return documentFields(document).contents.split(/\s+/, 12).join(' ');
}

/** The point halfway from each vector to the next, row-major: none is longer than the longest vector. @internal Exported for tests. */
export function vectorsBetween(vectors: readonly Float32Array[]): Float32Array {
  const dimension = vectors[0]!.length;
  const between = new Float32Array(vectors.length * dimension);
  for (const [i, vector] of vectors.entries()) {
    const next = vectors[(i + 1) % vectors.length]!;
    for (let j = 0; j < dimension; j++) between[i * dimension + j] = (vector[j]! + next[j]!) / 2;
  }
  return between;
}

/** Compares the hits by BM25 of the beginnings of documents, score bits included. Returns how many texts it compared. */
async function compareWords(
  published: PublishedIndex,
  { lexical, manifest }: IndexDirectory,
  documents: readonly string[],
): Promise<number> {
  const there = published.openWords();
  if (there === undefined) return 0;
  const here = await openLexicalFields(lexical);
  try {
    const texts = documents.map(firstWords);
    const { k1, b } = manifest.bm25!.made;
    const search = (fields: LexicalFields) =>
      fields.search({
        queries: texts.map((text) => bestFields(text, [...fields.indexes.keys()])),
        k: K,
        parameters: { k1, b, k1Factor: false },
      });
    const [own, stored] = await Promise.all([search(here), search(there)]);
    for (const [q, text] of texts.entries()) {
      if (stored.isExact?.[q] === false) continue;
      for (let i = q * K; i < (q + 1) * K; i++) {
        if (own.rows[i] !== stored.rows[i] || own.scores[i] !== stored.scores[i])
          throw differs(
            published,
            `hit ${i - q * K + 1} by BM25 of ${JSON.stringify(text)} is row ${stored.rows[i]} with ${stored.scores[i]}, in the folder row ${own.rows[i]} with ${own.scores[i]}`,
          );
      }
    }
    return texts.length;
  } finally {
    await Promise.all([here.close(), there.close()]);
  }
}

async function hitsOf(index: VectorIndex, questions: Float32Array): Promise<string[]> {
  const count = questions.length / index.dimension;
  const { rows, scores } = await index.search({ queries: questions, count, k: K });
  return Array.from({ length: count }, (_, q) =>
    JSON.stringify([...rows.subarray(q * K, (q + 1) * K), ...scores.subarray(q * K, (q + 1) * K)]),
  );
}

/** Evenly spaced live rows, the first and the last among them. */
export function sampledRows(rows: number, liveRows: RowBitmap | undefined, sample: number): number[] {
  const sampled = new Set<number>();
  for (let i = 0; i < sample; i++) {
    const at = Math.floor(((rows - 1) * i) / Math.max(1, sample - 1));
    const row = liveRows === undefined ? at : (liveRows.next(at) ?? liveRows.next(0));
    if (row !== undefined && row >= 0) sampled.add(row);
  }
  return [...sampled];
}

function differs({ collection }: PublishedIndex, difference: string): TrawlError {
  return new TrawlError(
    'STORE_DIFFERS',
    `What was published as ${collection} differs from the index: ${difference}. Publish the index again, under another name.`,
  );
}
