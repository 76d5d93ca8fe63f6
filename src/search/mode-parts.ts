import { TrawlError } from '../base/errors.ts';
import type { SearchMode } from './search-mode.ts';

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
