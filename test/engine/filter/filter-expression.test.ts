import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { asTrawlError, TrawlError } from '../../../src/base/errors.ts';
import {
  canonicalFilter,
  type Filter,
  type FilterValue,
  filterKey,
  MAX_FILTER_DEPTH,
} from '../../../src/engine/filter/filter.ts';
import { parseFilterExpression } from '../../../src/engine/filter/filter-expression.ts';
import { filterOf } from '../../../src/engine/filter/filter-json.ts';
import { runs } from '../../helpers/runs.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { arbitraryFilter } from './arbitrary-filters.ts';

const equal = (column: string, value: FilterValue): Filter => ({ column, op: '=', value });

test('an expression has comparisons, lists, existence, and, or and not', () => {
  assert.deepEqual(parseFilterExpression("source in ('a','b') and date >= 2020-01-01 and not archived"), {
    and: [
      { column: 'source', op: 'in', values: ['a', 'b'] },
      { column: 'date', op: '>=', value: '2020-01-01' },
      { not: equal('archived', true) },
    ],
  });
  for (const [text, filter] of [
    ["title = 'it''s'", equal('title', "it's")],
    ['n=-1.5e3', equal('n', -1500)],
    ['n < .5', { column: 'n', op: '<', value: 0.5 }],
    [
      'meta.date <= 2020-01-01T10:00:00.5+02:00',
      { column: 'meta.date', op: '<=', value: '2020-01-01T10:00:00.5+02:00' },
    ],
    ['"a ""b""" exists', { column: 'a "b"', op: 'exists' }],
    ['"and" != true', { column: 'and', op: '!=', value: true }],
    ['n not in (1, 2)', { not: { column: 'n', op: 'in', values: [1, 2] } }],
    ['n in ()', { column: 'n', op: 'in', values: [] }],
    ['n between 1 and 2', { column: 'n', op: 'range', gte: 1, lte: 2 }],
    ["between BETWEEN 'a' AND 'b'", { column: 'between', op: 'range', gte: 'a', lte: 'b' }],
    ['NOT (Größe EXISTS)', { not: { column: 'Größe', op: 'exists' } }],
  ] as const) {
    assert.deepEqual(parseFilterExpression(text), filter, text);
  }
});

test('a quoted text or name of 16 million characters is read, and refused without its closing quote', () => {
  const long = 'a'.repeat(2 ** 24);
  assert.deepEqual(parseFilterExpression(`n = '${long}'`), equal('n', long));
  assert.deepEqual(parseFilterExpression(`"${long}" = 1`), equal(long, 1));
  const doubled = "''".repeat(2 ** 23);
  assert.deepEqual(parseFilterExpression(`n = '${doubled}'`), equal('n', "'".repeat(2 ** 23)));
  for (const open of [`n = '${long}`, `n = '${doubled}`, `"${long}`, '""', `n = 'a''`]) {
    assert.throws(() => parseFilterExpression(open), trawlError('INVALID_REQUEST', /expected a (?:column|value)/));
  }
});

test('not binds tighter than and, and tighter than or; brackets change that', () => {
  assert.deepEqual(parseFilterExpression('a or b and not c'), {
    or: [equal('a', true), { and: [equal('b', true), { not: equal('c', true) }] }],
  });
  assert.deepEqual(parseFilterExpression('(a or b) and c'), {
    and: [{ or: [equal('a', true), equal('b', true)] }, equal('c', true)],
  });
});

test('a fault names its position, what was found and what is expected', () => {
  for (const [text, position, message] of [
    ['', 1, /found the end, expected a column/],
    ['source =', 9, /found the end, expected a value/],
    ['source = wiki', 10, /found "wiki", expected a value: 'text'/],
    ["source = 'wiki", 10, /found "'wiki", expected a column, a value/],
    ['source == 1', 9, /found "= 1", expected a value/],
    ["a = 'b' c", 9, /found "c", expected and, or, or the end/],
    ['(a', 3, /found the end, expected and, or, or \)/],
    ['a in 1', 6, /expected \( and a list/],
    ['a in (,)', 7, /expected a value/],
    ['a in (1,)', 9, /expected a value/],
    ['a in (1', 8, /expected , or \)/],
    ['a and and b', 7, /expected a column, not, or \(/],
    ['a not b', 7, /expected in/],
    ['a between 1', 12, /found the end, expected and/],
    ['a between 1 or 2', 13, /found "or 2", expected and/],
    ['a between b and c', 11, /expected a value/],
    ['a ; b', 3, /found "; b", expected a column/],
    ['n < 1e999', 5, /expected a number in the range of float64/],
  ] as const) {
    assert.throws(
      () => parseFilterExpression(text),
      (error) => {
        assert.ok(error instanceof TrawlError && error.code === 'INVALID_REQUEST', text);
        assert.ok(error.message.includes(`at character ${position}:`), `${text}: ${error.message}`);
        assert.match(error.message, message);
        return true;
      },
    );
  }
});

/** The filter as an expression, with all brackets. */
function expressionOf(filter: Filter): string {
  if ('and' in filter) return `(${filter.and.map(expressionOf).join(' and ')})`;
  if ('or' in filter) return `(${filter.or.map(expressionOf).join(' or ')})`;
  if ('not' in filter) return `not (${expressionOf(filter.not)})`;
  const column = /^[a-z.]+$/.test(filter.column) ? filter.column : `"${filter.column.replaceAll('"', '""')}"`;
  const literal = (value: FilterValue): string =>
    typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
  if (filter.op === 'exists') return `${column} exists`;
  if (filter.op === 'range') return `${column} between ${literal(filter.gte!)} and ${literal(filter.lte!)}`;
  if (filter.op !== 'in') return `${column} ${filter.op} ${literal(filter.value)}`;
  return `${column} in (${filter.values.map(literal).join(', ')})`;
}

/** An expression cannot have an operator with one part, nor a range with other bounds than `between`. */
function isExpressible(filter: Filter): boolean {
  if ('and' in filter) return filter.and.every(isExpressible);
  if ('or' in filter) return filter.or.every(isExpressible);
  if ('not' in filter) return isExpressible(filter.not);
  return filter.op !== 'range' || (filter.gte !== undefined && filter.lte !== undefined);
}

test('a filter is read from its JSON as it was', () => {
  fc.assert(
    fc.property(arbitraryFilter, (filter) => {
      const json: unknown = JSON.parse(JSON.stringify(filter));
      assert.deepEqual(filterOf(json), json);
    }),
  );
});

test('a filter written as an expression, and its JSON, are read as the same filter', () => {
  fc.assert(
    fc.property(arbitraryFilter.filter(isExpressible), (filter) => {
      const canonical = canonicalFilter(filter);
      assert.equal(canonicalFilter(parseFilterExpression(expressionOf(filter))), canonical);
      assert.equal(canonicalFilter(filterOf(JSON.parse(JSON.stringify(filter)))), canonical);
      assert.equal(canonicalFilter(filterOf(expressionOf(filter))), canonical);
    }),
  );
});

test('any text is a filter or an error with a position in it', () => {
  const piece = fc.constantFrom(
    'a',
    '"b"',
    "'c'",
    '1',
    '2020-01-01',
    'and',
    'or',
    'not',
    'in',
    'exists',
    '(',
    ')',
    ',',
    '=',
    '<=',
    'true',
    '-',
    "'",
    '"',
  );
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.array(piece).map((pieces) => pieces.join(' ')),
  );
  fc.assert(
    fc.property(text, (expression) => {
      try {
        canonicalFilter(parseFilterExpression(expression));
      } catch (error) {
        const { code, details } = asTrawlError(error);
        assert.equal(code, 'INVALID_REQUEST');
        const position = details.position as number;
        assert.ok(position >= 0 && position <= expression.length);
      }
    }),
    { numRuns: runs(500, 2_000) },
  );
});

test('any JSON is a filter or an error with its place', () => {
  const key = fc.constantFrom('and', 'or', 'not', 'column', 'op', 'value', 'values', 'gt', 'gte', 'lte', 'x');
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.constantFrom('=', 'in', 'range', 'exists', 'source', 'source = 1'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(key, tie('value'), { maxKeys: 3 }),
    ),
  })).value;
  fc.assert(
    fc.property(json, (value) => {
      try {
        canonicalFilter(filterOf(value));
      } catch (error) {
        assert.equal(asTrawlError(error).code, 'INVALID_REQUEST');
      }
    }),
    { numRuns: runs(300, 1_000) },
  );
});

test('JSON with a wrong part is refused with its place', () => {
  for (const [json, message] of [
    [null, /^filter: found null, expected an object such as/],
    [{ and: [] }, /^filter\.and: found an empty list, expected a list of at least one filter/],
    [{ or: [{ not: { column: 'a' } }] }, /^filter\.or\[0\]\.not\.op: found nothing, expected =, !=/],
    [{ column: 'a', op: '~', value: 1 }, /^filter\.op: found "~"/],
    [{ column: 'a', op: '=', value: [1] }, /^filter\.value: found a list, expected a string, a finite number/],
    [{ column: 'a', op: '=', values: [1] }, /the operator = needs column, op and value/],
    [{ column: 'a', op: 'in', value: 1 }, /the operator in needs column, op and values/],
    [{ column: 'a', op: 'in', values: [null] }, /^filter\.values\[0\]: found null/],
    [{ column: 'a', op: 'exists', value: 1 }, /the operator exists needs column and op/],
    [{ column: 'a', op: 'range' }, /the operator range needs column, op, gt or gte, and lt or lte, or one of them/],
    [{ column: 'a', op: 'range', gt: 1, gte: 1 }, /keys "column", "op", "gt", "gte"; the operator range needs/],
    [{ column: 'a', op: 'range', gte: 1, value: 2 }, /the operator range needs/],
    [{ column: 'a', op: 'range', lt: null }, /^filter\.lt: found null, expected a string, a finite number/],
    [{ column: 1, op: 'exists' }, /^filter\.column: found 1, expected a name/],
    [{}, /it has no keys; expected one of and, or and not/],
    [{ source: 'wiki' }, /it has the keys "source"; expected one of and, or and not, or column and op/],
    [{ and: [{ column: 'a', op: 'exists' }], or: [] }, /it has the keys "and", "or"/],
    [{ column: 'n', op: 'range' }, /filter: it has the keys "column", "op"; the operator range needs/],
  ] as const) {
    assert.throws(() => filterOf(json), trawlError('INVALID_REQUEST', message));
  }
});

test('depth, parts and values of a filter are limited', () => {
  const deep = (depth: number): string => `${'not '.repeat(depth)}a`;
  assert.doesNotThrow(() => parseFilterExpression(deep(MAX_FILTER_DEPTH - 1)));
  assert.throws(() => parseFilterExpression(deep(MAX_FILTER_DEPTH)), /nested at most 32 levels/);
  assert.throws(() => parseFilterExpression('('.repeat(100_000)), /nested at most 32 levels/);
  assert.throws(() => parseFilterExpression('a or '.repeat(2_000)), /at most 1000 tests/);
  assert.throws(() => parseFilterExpression(`a in (${'1,'.repeat(10_001)}1)`), /at most 10000 values/);
  let json: object = { column: 'a', op: 'exists' };
  for (let i = 0; i < MAX_FILTER_DEPTH; i++) json = { not: json };
  assert.throws(() => filterOf(json), trawlError('INVALID_REQUEST', /nested more than 32 levels deep/));
  const wide = { or: new Array(1_001).fill({ column: 'a', op: 'exists' }) };
  assert.throws(() => filterOf(wide), trawlError('INVALID_REQUEST', /more than 1000 parts/));
});

test('the order and the repetition of parts do not change the key, the values and operators do', () => {
  const key = (text: string): string => filterKey(parseFilterExpression(text));
  assert.equal(key('a and b and (c or d)'), key('(d or c or d) and (b and a)'));
  assert.equal(key('n in (2, 1, 2)'), key('n in (1, 2)'));
  assert.equal(key('n != 1'), key('not n = 1'));
  assert.equal(key('not not a'), key('a'));
  assert.equal(key('n in (1)'), key('n = 1'));
  assert.equal(filterKey({ column: 'n', op: 'range', gte: 1 }), key('n >= 1'));
  const different = [
    'a',
    'b',
    'not a',
    'a and b',
    'a or b',
    'n < 1',
    'n <= 1',
    "n = '1'",
    'n = 1',
    'n exists',
    'n in (1, 2)',
    'n between 1 and 2',
    'n >= 1 and n <= 2',
  ];
  assert.equal(new Set(different.map(key)).size, different.length);
});
