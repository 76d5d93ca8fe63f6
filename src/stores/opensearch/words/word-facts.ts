import type { FieldCounts } from '../../../engine/lexical/bm25.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import type { RowBitmap } from '../../../engine/row-bitmap.ts';
import type { Bm25Record } from '../../../index/manifest/schemas.ts';

/** What is known of the words of an index in OpenSearch. */
export interface WordFacts {
  readonly index: string;
  readonly rows: number;
  /** The rows that are in OpenSearch; undefined for all. */
  readonly liveRows: RowBitmap | undefined;
  readonly words: Bm25Record;
  /** Over the live rows. */
  readonly counts: ReadonlyMap<LexicalField, FieldCounts>;
  /** Whether OpenSearch's scores have the factor k1 + 1 (`hasK1Factor`). */
  readonly hasFactor: boolean;
}
