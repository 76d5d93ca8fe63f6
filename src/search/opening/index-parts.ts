import type { ColumnSource, RowFilters } from '../../engine/columns/row-filters.ts';
import type { FieldRanking } from '../../engine/lexical/bm25.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { VectorIndex } from '../../engine/vectors/vector-index.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import type { IndexDescription } from '../retriever-info.ts';
import { type ModeParts, missingPart, SEARCH_MODES, type SearchMode } from '../search-mode.ts';
import type { IndexEncoderOptions } from './open-index-encoder.ts';

/** How the parts of an index are opened. */
export interface IndexPartsOptions extends Pick<IndexEncoderOptions, 'onWarning' | 'signal'> {
  /**
   * The modes to open, the default mode first. `hybrid` opens dense and bm25 too. Calls in modes that are not open are refused. Default:
   * all modes of the index.
   */
  readonly modes?: readonly SearchMode[];
  /** Weights of the fields and tie breaker of the BM25 searches that set none, for an index with title and text apart. */
  readonly fieldRanking?: FieldRanking;
  /** Search threads; default: the available cores. */
  readonly searchThreads?: number;
  /** Where the first pass over the vectors of a folder runs: `cpu`, `cuda` or `cuda:1`. Default: `cpu`. */
  readonly searchDevice?: string;
}

/** What a retriever is made of, from a folder or from a store. */
export interface IndexParts {
  /** The name of an index without one of its own. */
  readonly name: string;
  readonly manifest: IndexManifest;
  /** Undefined for a store, which does not have the files of the shards. */
  readonly description: IndexDescription | undefined;
  readonly modes: readonly SearchMode[];
  /** Open already; undefined if no words are searched. */
  readonly lexical: LexicalFields | undefined;
  /** The store that searches the words; undefined if Trawl does. */
  readonly wordsIn: string | undefined;
  readonly columns: readonly ColumnSource[];
  readonly liveRows: RowBitmap | undefined;
  /** Folders at which the path of the model may start. */
  readonly modelFolders: readonly string[];
  /** Lets the vectors know the filters of rows that they are searched with. */
  watchFilters(filters: RowFilters): RowFilters;
  openVectors(): Promise<VectorIndex>;
  openPassages(): Promise<PassageStore>;
  /** Ends what only the opening needed. */
  close(): Promise<void>;
}

/** The wanted modes of an index that has their parts, and those that need no more. */
export function modesOf(has: ModeParts, wanted: readonly SearchMode[] | undefined): readonly SearchMode[] {
  const opened =
    wanted === undefined
      ? has
      : { vectors: wanted.some((mode) => mode !== 'bm25'), words: wanted.some((mode) => mode !== 'dense') };
  const possible = SEARCH_MODES.filter((mode) => missingPart(mode, opened, '') === undefined);
  return [...new Set([...(wanted ?? []), ...possible])];
}
