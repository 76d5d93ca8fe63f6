import { RunningCalls } from '../../base/running-calls.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { ColumnFile, NO_VALUE } from '../columns/column-file.ts';
import { type ColumnSource, columnExtremes, type RowFilters } from '../columns/row-filters.ts';
import type { Bound, RowTest } from '../filter/bind-filter.ts';
import type { StoredValue } from '../filter/column.ts';
import { RowBitmap } from '../row-bitmap.ts';

/** Rows between two checks of the time slice. */
const ROWS_AT_ONCE = 4_096;

/** A test of one column. */
type ColumnTest = Extract<RowTest, { readonly column: number }>;

/**
 * Filters in TypeScript, in short slices on the event loop: the oracle of the tests, and the fallback without a compiler. A file is
 * read into memory when a filter first needs it.
 *
 * @param rows of the index.
 */
export function referenceRowFilters(sources: readonly ColumnSource[], rows: number): RowFilters {
  const files = new Map<number, Promise<readonly ColumnFile[]>>();
  const calls = new RunningCalls('The index is closed.');

  function filesOf(column: number): Promise<readonly ColumnFile[]> {
    const known = files.get(column);
    if (known !== undefined) return known;
    const { paths, type } = sources[column]!;
    const reading = Promise.all(paths.map((path) => ColumnFile.read(path, type)));
    files.set(column, reading);
    // A file that could not be read may be there the next time.
    reading.catch(() => files.delete(column));
    return reading;
  }

  async function evaluate(test: RowTest, slice: TimeSlice): Promise<RowBitmap> {
    switch (test.type) {
      case 'and':
      case 'or': {
        let result = new RowBitmap(rows);
        if (test.type === 'and') result = result.complement();
        for (const each of test.tests) {
          const passing = await evaluate(each, slice);
          result = test.type === 'and' ? result.intersection(passing) : result.union(passing);
        }
        return result;
      }
      case 'not':
        return (await evaluate(test.test, slice)).complement();
      default:
        return passingRows(test, await filesOf(test.column), rows, slice);
    }
  }

  return {
    rows: (test, signal) => calls.run(() => evaluate(test, new TimeSlice(signal))),
    extremes: (column, request) => calls.run(() => columnExtremes(sources[column]!.paths, request)),
    close: () => calls.close(() => files.clear()),
  };
}

async function passingRows(
  test: ColumnTest,
  files: readonly ColumnFile[],
  rows: number,
  slice: TimeSlice,
): Promise<RowBitmap> {
  const result = new RowBitmap(rows);
  let first = 0;
  for (const file of files) {
    const passes = elementTest(test, file);
    for (let row = 0; row < file.header.rows; row++) {
      if (row % ROWS_AT_ONCE === 0 && slice.isOver) await slice.yield();
      const end = Math.min(file.endOf(row), file.elements);
      for (let at = file.startOf(row); at < end; at++) {
        const element = file.element(at);
        if (!file.isValue(element) || !passes(element)) continue;
        result.add(first + row);
        break;
      }
    }
    first += file.header.rows;
  }
  return result;
}

/** Whether an element that stands for a value passes. */
function elementTest(test: ColumnTest, file: ColumnFile): (element: number) => boolean {
  if (test.type === 'exists') return () => true;
  const { texts, header } = file;
  if (test.type === 'in') {
    if (header.type !== 'string') {
      const values = new Set(test.values);
      return (element) => values.has(file.valueOf(element));
    }
    const codes = new Set(
      test.values.flatMap((text) => {
        const rank = rankOf(texts, text);
        return texts[rank]?.equals(Buffer.from(String(text))) === true ? [rank + NO_VALUE + 1] : [];
      }),
    );
    return (element) => codes.has(element);
  }
  const { least, most } = test;
  if (header.type === 'string') {
    const from = least === undefined ? 0 : edge(texts, least, least.open);
    const to = most === undefined ? texts.length : edge(texts, most, !most.open);
    return (element) => element - NO_VALUE - 1 >= from && element - NO_VALUE - 1 < to;
  }
  return (element) =>
    (least === undefined || element > Number(least.value) || (!least.open && element === least.value)) &&
    (most === undefined || element < Number(most.value) || (!most.open && element === most.value));
}

/** The number of texts before the bound, the bound itself included if `including`. */
function edge(texts: readonly Buffer[], { value }: Bound, including: boolean): number {
  const rank = rankOf(texts, value);
  return including && texts[rank]?.equals(Buffer.from(String(value))) === true ? rank + 1 : rank;
}

/** The number of texts whose UTF-8 is smaller. */
function rankOf(texts: readonly Buffer[], text: StoredValue): number {
  const bytes = Buffer.from(String(text));
  let [low, high] = [0, texts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(texts[middle]!, bytes) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
