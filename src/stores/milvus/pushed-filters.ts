import type { RowFilters } from '../../engine/columns/row-filters.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { StoreFilters } from '../published/candidate-source.ts';
import { filterExpression } from './column-keys.ts';

/** Milvus's expressions of the filters that were evaluated here, by their rows. */
export class PushedFilters implements StoreFilters {
  readonly #keyed: ReadonlySet<number>;
  readonly #expressions = new WeakMap<RowBitmap, string>();

  /** @param keyed positions of the columns that are fields of the collection. */
  constructor(keyed: readonly number[]) {
    this.#keyed = new Set(keyed);
  }

  watching(filters: RowFilters): RowFilters {
    return {
      columns: filters.columns,
      rows: async (test, signal) => {
        const rows = await filters.rows(test, signal);
        const expression = filterExpression(test, this.#keyed);
        if (expression !== undefined) this.#expressions.set(rows, expression);
        return rows;
      },
      extremes: (column, request) => filters.extremes(column, request),
      close: () => filters.close(),
    };
  }

  expressionOf(rows: RowBitmap): string | undefined {
    return this.#expressions.get(rows);
  }
}
