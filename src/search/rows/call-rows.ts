import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { RowScopes } from '../../index/views/row-scopes.ts';
import type { RowScope } from '../calls/row-scope.ts';
import type { Stopwatch } from '../timings.ts';

/** The rows that the calls of one index may use. */
export class CallRows {
  readonly #scopes: RowScopes;
  /** Rows that are not deleted; undefined if no row is deleted. */
  readonly live: RowBitmap | undefined;

  constructor(scopes: RowScopes, live: RowBitmap | undefined) {
    this.#scopes = scopes;
    this.live = live;
  }

  /** The rows of a scope, deleted ones included; undefined for all rows. Errors: those of `RowScopes`. */
  of({ filter, views }: RowScope, watch: Stopwatch): RowBitmap | undefined | Promise<RowBitmap> {
    const rows = this.#scopes.rowsOf(filter, views);
    return rows instanceof Promise ? watch.time('search', () => rows) : rows;
  }

  /** Whether a row is live and in the rows of a scope. */
  isFound(row: number, among: RowBitmap | undefined): boolean {
    return this.live?.has(row) !== false && among?.has(row) !== false;
  }
}
