import { analyser } from '../../../engine/lexical/analysis/analysers.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import type { Bm25Record } from '../../../index/manifest/schemas.ts';
import { fieldText } from '../../../index/passages/field-text.ts';

/** The similarity of the fields with words: OpenSearch's BM25 with k1 and b of the index. */
export const SIMILARITY = 'trawl';

/** The field with the terms of a field of the passages. */
export function wordField(field: LexicalField): string {
  return `words_${field}`;
}

/**
 * The terms come from here, separated by spaces, so that they are the same as in the folder with any analyser. Positions are not
 * needed: Trawl has no phrase queries.
 */
export function wordMappings({ fields }: Pick<Bm25Record, 'fields'>): Readonly<Record<string, object>> {
  const mapping = { type: 'text', analyzer: 'whitespace', index_options: 'freqs', similarity: SIMILARITY };
  return Object.fromEntries(fields.map((field) => [wordField(field), mapping]));
}

/** k1 and b are settings of an index in OpenSearch. */
export function similaritySettings({ k1, b }: Pick<Bm25Record, 'k1' | 'b'>): object {
  return { similarity: { [SIMILARITY]: { type: 'BM25', k1, b } } };
}

/** Returns a function that makes the fields with the terms of a document. */
export function wordsOf(words: Pick<Bm25Record, 'analyser' | 'fields'>): (document: string) => Record<string, string> {
  const analyse = analyser(words.analyser);
  return (document) =>
    Object.fromEntries(words.fields.map((field) => [wordField(field), analyse(fieldText(document, field)).join(' ')]));
}
