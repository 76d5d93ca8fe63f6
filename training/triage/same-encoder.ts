import type { Retriever } from '../../src/search/retriever.ts';

/**
 * Whether the vectors of two indexes are of one encoder, so that both find nearly the same: equal weights and tokenizer, dimension,
 * pooling, normalisation and prefixes. Precision and token limits may differ. True for two states of one index, as before and after an
 * update.
 */
export function isSameEncoder({ info: one }: Retriever, { info: other }: Retriever): boolean {
  if (one.generation === other.generation) return true;
  const [a, b] = [one.model, other.model];
  if (a === null || b === null) return false;
  const sameWeights = a.sha256 === b.sha256 || (a.sourceSha256 !== undefined && a.sourceSha256 === b.sourceSha256);
  return (
    sameWeights &&
    a.dimension === b.dimension &&
    a.pooling === b.pooling &&
    a.normalize === b.normalize &&
    a.prefixes.query === b.prefixes.query &&
    a.prefixes.passage === b.prefixes.passage
  );
}
