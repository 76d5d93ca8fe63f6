/** How passages are ranked: by the similarity of their vectors, by BM25 over their words, or by both lists (`hybrid-settings.ts`). */
export const SEARCH_MODES = ['dense', 'bm25', 'hybrid'] as const;
export type SearchMode = (typeof SEARCH_MODES)[number];

/**
 * How BM25 hits with equal scores are ordered:
 * - `row`: by row, with exact scores;
 * - `pyserini`: by the id as text, with the rounded scores of Pyserini (`pyserini-order.ts`).
 */
export const BM25_ORDERS = ['row', 'pyserini'] as const;
export type Bm25Order = (typeof BM25_ORDERS)[number];
