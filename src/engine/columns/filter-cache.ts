import { LRUCache } from 'lru-cache';
import type { BoundFilter } from '../filter/bind-filter.ts';
import type { StoredValue } from '../filter/column.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { ExtremesRequest, RowFilters } from './row-filters.ts';

/** Bytes of bitmaps that an opened index keeps: about 100 filters over 21 million rows. */
const CACHE_BYTES = 256 * 1024 * 1024;
/** Estimated bytes of an entry without its bitmap and key. */
const ENTRY_BYTES = 256;

/** A set of rows and a text that no other set of the index has. It contains no space. */
export interface KeyedRows {
  readonly key: string;
  readonly rows: RowBitmap;
}

/**
 * The bitmaps of the filters used last. It belongs to one generation of an index, so a bitmap never outlives its rows. Equal
 * filters share one bitmap object, also while it is computed: searches with the same object share a batch.
 */
export class FilterCache {
  readonly #filters: RowFilters;
  readonly #bitmaps: LRUCache<string, RowBitmap>;
  readonly #computing = new Map<string, Promise<RowBitmap>>();

  /** @param maxBytes of the cached bitmaps; the least recently used are evicted first. */
  constructor(filters: RowFilters, maxBytes = CACHE_BYTES) {
    this.#filters = filters;
    this.#bitmaps = new LRUCache({ maxSize: maxBytes });
  }

  /** Bytes of the cached bitmaps. */
  get bytes(): number {
    return this.#bitmaps.calculatedSize;
  }

  /** The rows that pass the filter, only those in `among` if it is given. They must not be changed. @throws as `RowFilters.rows`. */
  async rows(filter: BoundFilter, among?: KeyedRows): Promise<RowBitmap> {
    if (among === undefined) return this.#cached(filter.key, () => this.#filters.rows(filter.test));
    return this.#cached(`${among.key} ${filter.key}`, async () => (await this.rows(filter)).intersection(among.rows));
  }

  /** Not cached: each search sorts other rows. @throws as `RowFilters.extremes`. */
  extremes(column: number, request: ExtremesRequest): Promise<readonly (StoredValue | undefined)[]> {
    return this.#filters.extremes(column, request);
  }

  async close(): Promise<void> {
    await this.#filters.close();
    this.#bitmaps.clear();
  }

  #cached(key: string, compute: () => Promise<RowBitmap>): RowBitmap | Promise<RowBitmap> {
    return this.#bitmaps.get(key) ?? this.#computing.get(key) ?? this.#compute(key, compute);
  }

  /** Not cancelled with its caller, because others may wait for the same bitmap. It takes milliseconds. */
  #compute(key: string, compute: () => Promise<RowBitmap>): Promise<RowBitmap> {
    const computing = compute();
    this.#computing.set(key, computing);
    const store = (rows: RowBitmap): void => {
      const size = rows.bytes.byteLength + 2 * key.length + ENTRY_BYTES;
      if (size <= this.#bitmaps.maxSize) this.#bitmaps.set(key, rows, { size });
    };
    void computing.then(store, () => undefined).then(() => this.#computing.delete(key));
    return computing;
  }
}
