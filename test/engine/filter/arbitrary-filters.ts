import fc from 'fast-check';
import type { Column } from '../../../src/engine/filter/column.ts';
import type { Filter, FilterValue } from '../../../src/engine/filter/filter.ts';

/** Columns of all types; rows have one value, several or none. */
export const COLUMNS: readonly Column[] = [
  { name: 'source', type: 'string' },
  { name: 'size', type: 'number' },
  { name: 'archived', type: 'boolean' },
  { name: 'meta.date', type: 'date' },
];

// Few values, so that comparisons hit; some that differ in UTF-8 and UTF-16 order, and numbers at the edges.
const TEXTS = ['', 'a', 'aa', 'b', 'B', 'ä', 'z', '￿', '💧', "it's", 'x"y'];
const NUMBERS = [-1e308, -2.5, -1, 0, 0.1, 1, 2, 1e-320, 2 ** 53 - 1, 1e308];
const DATES = [
  '0001-01-01',
  '1969-12-31T23:59:59.999Z',
  '1970-01-01',
  '2020-02-29',
  '2020-02-29T12:00:00+02:00',
  '9999-12-31',
];

const VALUES: Readonly<Record<Column['type'], fc.Arbitrary<FilterValue>>> = {
  string: fc.constantFrom(...TEXTS),
  number: fc.constantFrom(...NUMBERS),
  boolean: fc.boolean(),
  date: fc.constantFrom(...DATES),
};

/** A value, an array of values, or nothing. */
function cell(type: Column['type'], multiple: boolean): fc.Arbitrary<unknown> {
  const one = VALUES[type];
  return fc.oneof(one, fc.constant(null), ...(multiple ? [fc.array(one, { maxLength: 3 })] : []));
}

/** A corpus row with some of the columns. */
export function arbitraryRow(multiple: boolean): fc.Arbitrary<object> {
  return fc.record(
    {
      source: cell('string', multiple),
      size: cell('number', multiple),
      archived: cell('boolean', multiple),
      meta: fc.record({ date: cell('date', multiple) }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
}

function arbitraryRange(column: string, value: fc.Arbitrary<FilterValue>): fc.Arbitrary<Filter> {
  const least = fc.tuple(fc.constantFrom('gt', 'gte'), value);
  const most = fc.tuple(fc.constantFrom('lt', 'lte'), value);
  const bounds = fc.oneof(fc.tuple(least, most), fc.tuple(least), fc.tuple(most));
  return bounds.map((chosen) => ({ column, op: 'range', ...Object.fromEntries(chosen) }));
}

const test: fc.Arbitrary<Filter> = fc.constantFrom(...COLUMNS).chain(({ name: column, type }) => {
  const comparisons = type === 'boolean' ? (['=', '!='] as const) : (['=', '!=', '<', '<=', '>', '>='] as const);
  return fc.oneof(
    fc.record({ column: fc.constant(column), op: fc.constantFrom(...comparisons), value: VALUES[type] }),
    fc.record({
      column: fc.constant(column),
      op: fc.constant('in' as const),
      values: fc.array(VALUES[type], { maxLength: 5 }),
    }),
    fc.record({ column: fc.constant(column), op: fc.constant('exists' as const) }),
    ...(type === 'boolean' ? [] : [arbitraryRange(column, VALUES[type])]),
  );
});

/** A filter over COLUMNS. */
export const arbitraryFilter: fc.Arbitrary<Filter> = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3 },
    test,
    fc.record({ and: fc.array(tie('filter'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ or: fc.array(tie('filter'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ not: tie('filter') }),
  ),
})).filter;
