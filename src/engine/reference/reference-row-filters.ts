import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../base/abort.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import { columnExtremes, type ExtremesRequest } from '../columns/column-extremes.ts';
import { ColumnFile } from '../columns/column-file.ts';
import { NO_VALUE } from '../columns/column-format.ts';
import type { ColumnSource, RowFilters } from '../columns/row-filters.ts';
import type { Bound, RowTest, StoredValue } from '../filter/bind-filter.ts';
import type { Column } from '../filter/column.ts';
import { RowBitmap } from '../row-bitmap.ts';

/** Rows between two pauses, in which the event loop serves others. */
const ROWS_AT_ONCE = 1 << 16;

/** Whether an element of a column file passes. Elements without a value are not tested. */
type Passes = (element: number) => boolean;

/**
 * Filters in TypeScript, in short slices on the event loop: the oracle of the tests, and the fallback without a compiler. A file is
 * read into memory when a filter first needs it.
 */
export class ReferenceRowFilters implements RowFilters {
  readonly columns: readonly Column[];
  readonly #sources: readonly ColumnSource[];
  readonly #rows: number;
  readonly #files = new Map<number, Promise<readonly ColumnFile[]>>();
  readonly #calls = new RunningCalls('The index is closed.');

  /** @param rows of the index. */
  constructor(sources: readonly ColumnSource[], rows: number) {
    this.columns = sources.map(({ name, type }) => ({ name, type }));
    this.#sources = sources;
    this.#rows = rows;
  }

  rows(test: RowTest, signal?: AbortSignal): Promise<RowBitmap> {
    return this.#calls.run(() => this.#evaluate(test, signal));
  }

  extremes(column: number, request: ExtremesRequest): Promise<readonly (StoredValue | undefined)[]> {
    return this.#calls.run(() => columnExtremes(this.#sources[column]!.paths, request));
  }

  close(): Promise<void> {
    return this.#calls.close(async () => this.#files.clear());
  }

  async #evaluate(test: RowTest, signal: AbortSignal | undefined): Promise<RowBitmap> {
    switch (test.type) {
      case 'and':
      case 'or': {
        const all = new RowBitmap(this.#rows).complement();
        let result = test.type === 'and' ? all : new RowBitmap(this.#rows);
        for (const each of test.tests) {
          const rows = await this.#evaluate(each, signal);
          result =
            test.type === 'and'
              ? result.intersection(rows)
              : result.complement().intersection(rows.complement()).complement();
        }
        return result;
      }
      case 'not':
        return (await this.#evaluate(test.test, signal)).complement();
      default:
        return this.#column(test, signal);
    }
  }

  async #column(
    test: Extract<RowTest, { readonly column: number }>,
    signal: AbortSignal | undefined,
  ): Promise<RowBitmap> {
    const result = new RowBitmap(this.#rows);
    let first = 0;
    for (const file of await this.#filesOf(test.column)) {
      const passes = passesOf(test, file);
      const isCode = file.header.width < 8;
      for (let row = 0; row < file.header.rows; row++) {
        if (row % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) {
          await setImmediate();
          throwIfCancelled(signal);
        }
        const end = Math.min(file.endOf(row), file.elements);
        for (let at = file.startOf(row); at < end; at++) {
          const element = file.element(at);
          const hasValue = isCode ? element !== NO_VALUE : !Number.isNaN(element);
          if (!hasValue || !passes(element)) continue;
          result.add(first + row);
          break;
        }
      }
      first += file.header.rows;
    }
    return result;
  }

  #filesOf(column: number): Promise<readonly ColumnFile[]> {
    const known = this.#files.get(column);
    if (known !== undefined) return known;
    const { paths, type } = this.#sources[column]!;
    const reading = Promise.all(paths.map((path) => ColumnFile.read(path, type)));
    this.#files.set(column, reading);
    // A file that could not be read may be there the next time.
    reading.catch(() => this.#files.delete(column));
    return reading;
  }
}

function passesOf(test: Extract<RowTest, { readonly column: number }>, file: ColumnFile): Passes {
  if (test.type === 'exists') return () => true;
  const { type } = file.header;
  if (test.type === 'in') {
    if (type === 'number' || type === 'date') {
      const values = new Set(test.values);
      return (element) => values.has(element);
    }
    const texts = new Set(test.values.map((value) => String(value)));
    const codeOf = (text: string): number => (type === 'boolean' ? Number(text) : rankOf(file.texts, text));
    const codes = new Set<number>();
    for (const text of texts) {
      const rank = codeOf(text);
      if (type === 'boolean' || file.texts[rank]?.equals(Buffer.from(text)) === true) codes.add(rank + NO_VALUE + 1);
    }
    return (element) => codes.has(element);
  }
  const { least, most } = test;
  if (type === 'string') {
    const from = least === undefined ? 0 : edge(file.texts, least, least.open);
    const to = most === undefined ? file.texts.length : edge(file.texts, most, !most.open);
    return (element) => element - NO_VALUE - 1 >= from && element - NO_VALUE - 1 < to;
  }
  const isAbove = ({ value, open }: Bound, element: number): boolean =>
    element > Number(value) || (!open && element === value);
  const isBelow = ({ value, open }: Bound, element: number): boolean =>
    element < Number(value) || (!open && element === value);
  return (element) =>
    (least === undefined || isAbove(least, element)) && (most === undefined || isBelow(most, element));
}

/** The number of texts before the bound, the bound itself included if `including`. */
function edge(texts: readonly Buffer[], { value }: Bound, including: boolean): number {
  const rank = rankOf(texts, String(value));
  return including && texts[rank]?.equals(Buffer.from(String(value))) === true ? rank + 1 : rank;
}

/** The number of texts whose UTF-8 is smaller. */
function rankOf(texts: readonly Buffer[], text: string): number {
  const bytes = Buffer.from(text);
  let [low, high] = [0, texts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(texts[middle]!, bytes) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
