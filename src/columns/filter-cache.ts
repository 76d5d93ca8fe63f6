import { LRUCache } from 'lru-cache';
import type { BoundFilter } from '../filter/bind-filter.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { RowFilters } from './row-filters.ts';

/** Bytes of bitmaps that an opened index keeps: about 100 filters over 21 million rows. */
const CACHE_BYTES = 256 * 1024 * 1024;
/** Estimated bytes of an entry without its bitmap and key. */
const ENTRY_BYTES = 256;

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

  /** The rows that pass. They must not be changed. @throws as `RowFilters.rows`. */
  async rows({ test, key }: BoundFilter): Promise<RowBitmap> {
    const cached = this.#bitmaps.get(key);
    if (cached !== undefined) return cached;
    const running = this.#computing.get(key) ?? this.#compute(test, key);
    return running;
  }

  async close(): Promise<void> {
    await this.#filters.close();
    this.#bitmaps.clear();
  }

  /** Not cancelled with its caller, because others may wait for the same bitmap. It takes milliseconds. */
  #compute(test: BoundFilter['test'], key: string): Promise<RowBitmap> {
    const computing = this.#filters.rows(test);
    this.#computing.set(key, computing);
    const done = computing.then(
      (rows) => {
        const size = rows.bytes.byteLength + 2 * key.length + ENTRY_BYTES;
        if (size <= this.#bitmaps.maxSize) this.#bitmaps.set(key, rows, { size });
      },
      () => undefined,
    );
    void done.then(() => this.#computing.delete(key));
    return computing;
  }
}
