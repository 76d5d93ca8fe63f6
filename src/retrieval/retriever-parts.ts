import type { FilterCache } from '../columns/filter-cache.ts';
import type { TokenCutter } from '../embedding/cutting/token-cutter.ts';
import type { TextEncoder } from '../embedding/text-encoder.ts';
import type { FieldRanking } from '../lexical-index/bm25.ts';
import type { LexicalFields } from '../lexical-index/lexical-fields.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { VectorIndex } from '../vector-index/vector-index.ts';

/** The parts of a retriever, which closes them. */
export interface RetrieverParts {
  /** Absent if only BM25 is served. */
  readonly dense?: { readonly encoder: TextEncoder; readonly index: VectorIndex } | undefined;
  /** Absent if only dense search is served. */
  readonly lexical?: LexicalFields | undefined;
  /** Weights of the fields and tie breaker of the BM25 searches that set none. */
  readonly fieldRanking?: FieldRanking | undefined;
  /** Absent if the index has no columns. */
  readonly filters?: FilterCache | undefined;
  /** The rows of each view by its name; absent if there are none. */
  readonly views?: ReadonlyMap<string, RowBitmap> | undefined;
  readonly passages: PassageStore;
  /** Absent if the index has no model and no tokenizer was named. */
  readonly cutter?: TokenCutter | undefined;
  /** Rows that are not deleted; absent if no row is deleted. */
  readonly liveRows?: RowBitmap | undefined;
}
