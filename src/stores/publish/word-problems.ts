import { DEFAULT_BM25 } from '../../engine/lexical/bm25.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { PublishedIndex } from '../published/open-stored.ts';

/** Rows whose words are compared with their documents. */
const SAMPLE = 64;
/** Words at the beginning of a document that are searched. */
const WORDS_OF_A_TEXT = 12;

/**
 * Compares the words of sampled rows with their documents: the store's score of a row for the beginning of its own text with the
 * score that is computed here of the document.
 */
export async function wordProblems(published: PublishedIndex, signal: AbortSignal): Promise<string[]> {
  const words = published.openWords();
  if (words === undefined) return [];
  const passages = published.openPassages();
  try {
    const { manifest, liveRows } = published;
    const rows = new Set<number>();
    for (let i = 0; i < SAMPLE; i++) {
      const at = Math.floor((manifest.rows * i) / SAMPLE);
      const row = liveRows === undefined ? at : liveRows.next(at);
      if (row !== undefined) rows.add(row);
    }
    const { k1, b } = manifest.bm25!.made;
    const parameters = { ...DEFAULT_BM25, k1, b };
    const sampled = [...rows];
    const documents = await passages.getMany(sampled, signal);
    const problems: string[] = [];
    for (const [i, row] of sampled.entries()) {
      const query = documentFields(documents[i]!).contents.split(/\s+/, WORDS_OF_A_TEXT).join(' ');
      const filter = new RowBitmap(manifest.rows);
      filter.add(row);
      for (const [field, index] of words.indexes) {
        const found = await index.search({ queries: [query], k: 1, parameters, filter, signal });
        const [terms] = await index.explain({ query, rows: [row], parameters, signal });
        const expected = Math.fround(terms!.reduce((sum, { score }) => sum + score, 0));
        const score = found.counts[0] === 0 ? 0 : found.scores[0]!;
        if (score !== expected && found.isExact?.[0] !== false)
          problems.push(
            `The words of ${field} of row ${row} have the score ${score}; by its document it is ${expected}.`,
          );
      }
    }
    return problems;
  } finally {
    await Promise.all([words.close(), passages.close()]);
  }
}
