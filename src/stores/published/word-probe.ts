import Type from 'typebox';
import { LEXICAL_FIELDS } from '../../engine/lexical/lexical-settings.ts';
import { Count } from '../../index/manifest/schemas.ts';

/** A word of a field with its best row, by which a store's way of scoring is recognised; and the counts of the field. */
export const WordProbe = Type.Object({
  field: Type.Enum([...LEXICAL_FIELDS]),
  term: Type.String(),
  row: Count,
  /** Lucene's score, and Elasticsearch's with the factor k1 + 1. */
  score: Type.Number(),
  factoredScore: Type.Number(),
});
export type WordProbe = Type.Static<typeof WordProbe>;

/** Of a field, over the live rows. */
export const WordCounts = Type.Object({
  field: Type.Enum([...LEXICAL_FIELDS]),
  documents: Count,
  tokens: Count,
});
export type WordCounts = Type.Static<typeof WordCounts>;
