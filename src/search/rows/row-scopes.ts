import { bug } from '../../base/errors.ts';
import type { FilterCache, KeyedRows } from '../../engine/columns/filter-cache.ts';
import { bindFilter } from '../../engine/filter/bind-filter.ts';
import type { Column } from '../../engine/filter/column.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { unknownView } from '../../index/views/view-definition.ts';
import type { RowScope } from '../calls/retrieve-call.ts';

interface RowScopeParts {
  /** Name of the index, for messages. */
  readonly index: string;
  readonly columns: readonly Column[];
  /** Undefined if the index has no columns. */
  readonly filters: FilterCache | undefined;
  readonly views: ReadonlyMap<string, RowBitmap>;
  /** Rows that are not deleted; undefined if no row is deleted. */
  readonly liveRows: RowBitmap | undefined;
}

/** Intersections of views that are kept. Clients cannot cause many, because a path adds at most one view. */
const KEPT_INTERSECTIONS = 16;

/**
 * The rows that calls may use, by their filters and views. Equal scopes get the same bitmap object as long as it is cached: searches
 * with the same object share a batch.
 */
export class RowScopes {
  readonly #parts: RowScopeParts;
  readonly #intersections = new Map<string, RowBitmap>();

  constructor(parts: RowScopeParts) {
    this.#parts = parts;
  }

  get live(): RowBitmap | undefined {
    return this.#parts.liveRows;
  }

  /** Whether a row is live and in the rows of a scope. */
  isFound(row: number, among: RowBitmap | undefined): boolean {
    return this.live?.has(row) !== false && among?.has(row) !== false;
  }

  /**
   * The rows of a scope, deleted ones included; undefined for all rows. Returns a promise only with a filter. The rows must not be
   * changed.
   *
   * @throws TrawlError NOT_FOUND for a view that the index does not have; INVALID_REQUEST as `bindFilter`.
   */
  rowsInScope({ filter, views = [] }: RowScope): RowBitmap | undefined | Promise<RowBitmap> {
    const viewed = this.#viewed(views);
    if (filter === undefined) return viewed?.rows;
    const { columns, index, filters } = this.#parts;
    const bound = bindFilter(filter, columns, index);
    if (filters === undefined) throw bug('a filter was bound to an index without columns');
    return filters.rows(bound, viewed);
  }

  #viewed(names: readonly string[]): KeyedRows | undefined {
    if (names.length === 0) return undefined;
    const [first, ...others] = [...new Set(names)].sort();
    if (others.length === 0) return { key: first!, rows: this.#view(first!) };
    const key = [first, ...others].join();
    const known = this.#intersections.get(key);
    if (known !== undefined) return { key, rows: known };
    const rows = others.reduce((all, name) => all.intersection(this.#view(name)), this.#view(first!));
    this.#intersections.set(key, rows);
    const [oldest] = this.#intersections.keys();
    if (this.#intersections.size > KEPT_INTERSECTIONS) this.#intersections.delete(oldest!);
    return { key, rows };
  }

  #view(name: string): RowBitmap {
    const { views, index } = this.#parts;
    const rows = views.get(name);
    if (rows === undefined) throw unknownView(name, index, [...views.keys()]);
    return rows;
  }
}
