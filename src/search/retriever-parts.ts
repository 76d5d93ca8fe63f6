import type { TokenCutter } from '../encoder/cutting/token-cutter.ts';
import type { TextEncoder } from '../encoder/text-encoder.ts';
import type { FilterCache } from '../engine/columns/filter-cache.ts';
import type { FieldRanking } from '../engine/lexical/bm25.ts';
import type { LexicalFields } from '../engine/lexical/lexical-fields.ts';
import type { RowBitmap } from '../engine/row-bitmap.ts';
import type { VectorIndex } from '../engine/vectors/vector-index.ts';
import type { PassageStore } from '../index/passages/passage-store.ts';

/** The parts of a retriever, which closes them. */
export interface RetrieverParts {
  /** Absent if only BM25 is served. */
  readonly dense?: { readonly encoder: TextEncoder; readonly index: VectorIndex } | undefined;
  /** Absent if only dense search is served. */
  readonly lexical?: LexicalFields;
  /** Weights of the fields and tie breaker of the BM25 searches that set none. */
  readonly fieldRanking?: FieldRanking;
  /** Absent if the index has no columns. */
  readonly filters?: FilterCache;
  /** The rows of each view by its name; absent if there are none. */
  readonly views?: ReadonlyMap<string, RowBitmap> | undefined;
  readonly passages: PassageStore;
  /** Absent if the index has no model and no tokenizer was named. */
  readonly cutter?: TokenCutter;
  /** Rows that are not deleted; absent if no row is deleted. */
  readonly liveRows?: RowBitmap;
}
