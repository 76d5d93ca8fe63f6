import { TrawlError } from '../base/errors.ts';

/** How passages are ranked: by the similarity of their vectors, by BM25 over their words, or by both lists (`hybrid-settings.ts`). */
export const SEARCH_MODES = ['dense', 'bm25', 'hybrid'] as const;
export type SearchMode = (typeof SEARCH_MODES)[number];

/**
 * How BM25 hits with equal scores are ordered:
 * - `row`: by row, with exact scores;
 * - `pyserini`: by the id as text, with the rounded scores of Pyserini (`pyserini-search.ts`).
 */
export const BM25_ORDERS = ['row', 'pyserini'] as const;
export type Bm25Order = (typeof BM25_ORDERS)[number];

/** The parts that an index has, or that are open. */
export interface ModeParts {
  readonly vectors: boolean;
  readonly words: boolean;
}

/** The error for a search in a mode that needs a part the index lacks or that was not opened; undefined if it has all. */
export function missingPart(mode: SearchMode, { vectors, words }: ModeParts, index: string): TrawlError | undefined {
  if (mode !== 'bm25' && !vectors) return modeMissing(mode, index, NO_VECTORS);
  if (mode !== 'dense' && !words) return modeMissing(mode, index, NO_WORDS);
  return undefined;
}

const NO_WORDS = {
  reason: 'has no inverted index or was opened without it, so it cannot be searched by BM25',
  way: 'If it has none, make one with trawl optimize INDEX --bm25.',
};

const NO_VECTORS = {
  reason: 'has no vectors or was opened without its encoder, so it can be searched by BM25 only',
  way: 'If it has none, build it with an encoder: trawl index CORPUS --model MODEL --bm25.',
};

function modeMissing(mode: SearchMode, index: string, { reason, way }: typeof NO_WORDS): TrawlError {
  const hybrid = mode === 'hybrid' ? ' The mode hybrid needs vectors and an inverted index.' : '';
  return new TrawlError('NOT_SUPPORTED', `The index ${index} ${reason}.${hybrid} ${way}`, { details: { mode } });
}
