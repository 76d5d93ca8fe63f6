import { TrawlError } from '../../base/errors.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import { bestFields } from '../../engine/lexical/lexical-query.ts';
import { openLexicalFields } from '../../engine/lexical/open-lexical-index.ts';
import { openEngine } from '../../engine/vectors/open-engine.ts';
import type { VectorIndex } from '../../engine/vectors/vector-index.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { IndexDirectory } from '../../search/opening/index-directory.ts';
import type { PublishedIndex } from '../published/open-stored.ts';
import type { PublishedRow } from '../published/published-row.ts';
import type { LocalRows } from './local-rows.ts';
import { vectorsBetween } from './vectors-between.ts';

/** Hits that are compared for each question. */
const K = 10;

export interface VerifiedPublication {
  /** Rows whose vector, document and id were compared bit for bit. */
  readonly rows: number;
  /** Questions whose first hits were compared. */
  readonly questions: number;
  /** Texts whose first hits by BM25 were compared; 0 if the store does not search words. */
  readonly texts: number;
  /** Of these, those with the same rows and scores; all of them if the store scores every row. */
  readonly same: number;
}

/**
 * Compares a published index with its folder: sampled rows, and the hits of questions, which lie halfway between the vectors of
 * two sampled rows, as questions lie between passages.
 *
 * @throws TrawlError STORE_DIFFERS with the first difference.
 */
export async function verifyPublication(
  published: PublishedIndex,
  { directory, local, sample }: { directory: IndexDirectory; local: LocalRows; sample: number },
): Promise<VerifiedPublication> {
  const rows = sampledRows(directory, sample);
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
    const [local10, stored10] = await Promise.all([here, vectors].map((index) => hitsOf(index, questions)));
    const same = local10!.filter((hits, q) => hits === stored10![q]).length;
    if (stored10!.length !== same && published.scoresEveryRow) {
      throw differs(
        published,
        `${stored10!.length - same} of ${stored10!.length} questions have other hits than in the folder`,
      );
    }
    // A vector that differs in one bit has another score with itself.
    await compareVectors(published, here, vectors, expected);
    const texts = await compareWords(
      published,
      directory,
      expected.map(({ document }) => document),
    );
    return { rows: rows.length, questions: stored10!.length, texts, same };
  } finally {
    await Promise.all([passages.close(), vectors.close(), here.close()]);
  }
}

async function compareVectors(
  published: PublishedIndex,
  here: VectorIndex,
  vectors: VectorIndex,
  expected: readonly { readonly row: number; readonly vector: Float32Array }[],
): Promise<void> {
  const stored = await published.vectorsOf(expected.map(({ row }) => row));
  for (const [i, { row, vector }] of expected.entries()) {
    const own = stored.subarray(i * vectors.dimension, (i + 1) * here.dimension);
    if (!vector.every((value, j) => Object.is(value, own[j]) || value === own[j]))
      throw differs(published, `the vector of row ${row} differs`);
  }
}

/** Words at the beginning of a document that are searched. */
const WORDS_OF_A_TEXT = 12;

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
    const texts = documents.map((document) =>
      documentFields(document).contents.split(/\s+/, WORDS_OF_A_TEXT).join(' '),
    );
    const { k1, b } = manifest.bm25!.made;
    const search = (fields: LexicalFields) =>
      fields.search({
        queries: texts.map((text) => bestFields(text, [...fields.indexes.keys()])),
        k: K,
        parameters: { k1, b, k1Factor: false },
      });
    const [a, z] = await Promise.all([search(here), search(there)]);
    for (const [q, text] of texts.entries()) {
      if (z.isExact?.[q] === false) continue;
      for (let i = q * K; i < (q + 1) * K; i++) {
        if (a.rows[i] !== z.rows[i] || a.scores[i] !== z.scores[i])
          throw differs(
            published,
            `hit ${i - q * K + 1} by BM25 of ${JSON.stringify(text)} is row ${z.rows[i]} with ${z.scores[i]}, in the folder row ${a.rows[i]} with ${a.scores[i]}`,
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
function sampledRows({ manifest, liveRows }: IndexDirectory, sample: number): number[] {
  const rows = new Set<number>();
  for (let i = 0; i < sample; i++) {
    const at = Math.floor(((manifest.rows - 1) * i) / Math.max(1, sample - 1));
    const row = liveRows === undefined ? at : (liveRows.next(at) ?? liveRows.next(0));
    if (row !== undefined && row >= 0) rows.add(row);
  }
  return [...rows];
}

function differs({ collection }: PublishedIndex, difference: string): TrawlError {
  return new TrawlError(
    'STORE_DIFFERS',
    `What was published as ${collection} differs from the index: ${difference}. Publish the index again, under another name.`,
  );
}
