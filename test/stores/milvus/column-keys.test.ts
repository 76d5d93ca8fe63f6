import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RowTest } from '../../../src/engine/filter/bind-filter.ts';
import type { StoredValue } from '../../../src/engine/filter/column.ts';
import { columnKey, filterExpression, NO_KEY } from '../../../src/stores/milvus/column-keys.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

/** A row's value in each column, the first with numbers, the second with texts. */
type Row = readonly (StoredValue | undefined)[];

const NUMBERS = [0, -0, 1, -1, 0.1, 1e300, -1e300, 5e-324, -5e-324, 2 ** 53, 2 ** 53 - 1, Infinity, -Infinity, 1_900];
const TEXTS = ['', 'a', 'B', "it's", '"]', '\\', 'ü😀', 'column_0', '\n', '0'];
const KEYED = new Set([0, 1]);

/** A filter by its definition (docs/filters.md), for columns with at most one value. */
function holds(filter: RowTest, row: Row): boolean {
  if ('tests' in filter) {
    const passes = (each: RowTest): boolean => holds(each, row);
    return filter.type === 'and' ? filter.tests.every(passes) : filter.tests.some(passes);
  }
  if (filter.type === 'not') return !holds(filter.test, row);
  const value = row[filter.column];
  if (value === undefined || filter.type === 'exists') return value !== undefined;
  if (filter.type === 'in') return filter.values.some((each) => each === value);
  const { least, most } = filter;
  if (least !== undefined && !(least.open ? value > least.value : value >= least.value)) return false;
  return most === undefined || (most.open ? value < most.value : value <= most.value);
}

/** Evaluates the part of Milvus's expressions that is used, with integers of 64 bits. */
function evaluate(expression: string, row: Row): boolean {
  const tokens = expression.match(/\[[^\]]*\]|>=|<=|!=|[<>()]|[\w-]+/g)!;
  const next = (): string => tokens.shift()!;
  const factor = (): boolean => {
    const token = next();
    if (token === 'not') return !factor();
    if (token === '(') {
      const inner = either();
      assert.equal(next(), ')');
      return inner;
    }
    const [, column] = /^column_(\d)$/.exec(token) ?? [];
    const value = column === undefined ? undefined : row[Number(column)];
    const left = BigInt(token === 'row' ? 7 : value === undefined ? NO_KEY : columnKey(value));
    const operator = next();
    const right = next();
    if (operator === 'in') return right.slice(1, -1).split(',').map(BigInt).includes(left);
    const other = BigInt(right);
    if (operator === '!=') return left !== other;
    if (operator === '<') return left < other;
    if (operator === '<=') return left <= other;
    return operator === '>' ? left > other : left >= other;
  };
  const both = (): boolean => {
    let result = factor();
    while (tokens[0] === 'and') {
      next();
      result = factor() && result;
    }
    return result;
  };
  const either = (): boolean => {
    let result = both();
    while (tokens[0] === 'or') {
      next();
      result = both() || result;
    }
    return result;
  };
  const result = either();
  assert.deepEqual(tokens, []);
  return result;
}

test('any filter over numbers and equality of texts holds for the same rows as its expression', () => {
  const random = seededRandom(11);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const values = (column: number): readonly StoredValue[] => (column === 0 ? NUMBERS : TEXTS);
  const filter = (depth: number): RowTest => {
    const type = pick(
      depth > 0 ? (['and', 'or', 'not', 'in', 'range', 'exists'] as const) : (['in', 'range'] as const),
    );
    const column = type === 'range' ? 0 : pick([0, 1]);
    const parts = Array.from({ length: Math.floor(random() * 4) }, () => 0);
    if (type === 'and' || type === 'or') return { type, tests: parts.map(() => filter(depth - 1)) };
    if (type === 'not') return { type, test: filter(depth - 1) };
    if (type === 'in') return { type, column, values: parts.map(() => pick(values(column))) };
    if (type === 'exists') return { type, column };
    const bound = () => ({ value: pick(NUMBERS), open: random() < 0.5 });
    return {
      type,
      column,
      ...(random() < 0.7 ? { least: bound() } : {}),
      ...(random() < 0.7 ? { most: bound() } : {}),
    };
  };
  const rows: Row[] = [...NUMBERS, undefined].flatMap((number) => [...TEXTS, undefined].map((text) => [number, text]));
  for (let i = 0; i < 400; i++) {
    const each = filter(4);
    const expression = filterExpression(each, KEYED)!;
    for (const row of rows) assert.equal(evaluate(expression, row), holds(each, row), `${expression}: ${String(row)}`);
  }
});

test('keys of numbers have their order', () => {
  const sorted = NUMBERS.toSorted((a, b) => a - b);
  for (const [i, number] of sorted.entries()) {
    assert.ok(BigInt(columnKey(number)) > BigInt(NO_KEY));
    for (const larger of sorted.slice(i)) {
      assert.equal(BigInt(columnKey(number)) < BigInt(columnKey(larger)), number < larger, `${number} and ${larger}`);
    }
  }
});

test('a filter that Milvus cannot evaluate with the same meaning has no expression, nor has a filter with such a part', () => {
  const fine: RowTest = { type: 'exists', column: 0 };
  const wrong: RowTest[] = [
    { type: 'exists', column: 2 },
    { type: 'range', column: 1, least: { value: 'a', open: false } },
    { type: 'in', column: 0, values: Array.from({ length: 10_000 }, (_, i) => i) },
    { type: 'or', tests: Array.from({ length: 42 }, () => fine) },
  ];
  assert.notEqual(filterExpression({ type: 'or', tests: Array.from({ length: 41 }, () => fine) }, KEYED), undefined);
  assert.equal(filterExpression(fine, KEYED), `column_0 != ${NO_KEY}`);
  for (const part of wrong) {
    for (const each of [part, { type: 'not', test: part }, { type: 'and', tests: [fine, part] }] as RowTest[])
      assert.equal(filterExpression(each, KEYED), undefined, JSON.stringify(part).slice(0, 80));
  }
});
