import assert from 'node:assert/strict';
import { test } from 'node:test';
import { laxBoolean, laxInteger } from '../../src/server/dialects/parts/read-request.ts';

// Both tables were recorded with pydantic 2.13 behind FastAPI.
const INTEGERS: readonly (readonly [unknown, number | string])[] = [
  [2, 2],
  ['2', 2],
  [2.0, 2],
  [true, 1],
  [false, 0],
  [-1, -1],
  ['-1', -1],
  [' 2 ', 2],
  ['\u00a02\t', 2],
  ['2.0', 2],
  ['2.000', 2],
  ['1_000', 1000],
  ['+3', 3],
  ['00012', 12],
  ['0', 0],
  [1e2, 100],
  [2.5, 'int_from_float'],
  ['2.5', 'int_parsing'],
  ['2.', 'int_parsing'],
  ['.0', 'int_parsing'],
  ['', 'int_parsing'],
  ['a', 'int_parsing'],
  ['1e2', 'int_parsing'],
  ['0x10', 'int_parsing'],
  ['1__0', 'int_parsing'],
  ['_1', 'int_parsing'],
  ['- 1', 'int_parsing'],
  ['٣', 'int_parsing'],
  ['1'.repeat(4_301), 'int_parsing_size'],
  [`1${'_1'.repeat(5_000_000)}`, 'int_parsing_size'],
  [[], 'int_type'],
  [{}, 'int_type'],
];

const BOOLEANS: readonly (readonly [unknown, boolean | string])[] = [
  [true, true],
  [false, false],
  ['yes', true],
  [1, true],
  ['TRUE', true],
  ['T', true],
  ['y', true],
  ['on', true],
  ['1', true],
  ['off', false],
  ['F', false],
  ['No', false],
  ['0', false],
  [0, false],
  [-0, false],
  [2, 'bool_parsing'],
  ['maybe', 'bool_parsing'],
  ['', 'bool_parsing'],
  [' true ', 'bool_parsing'],
  [0.5, 'bool_type'],
  [null, 'bool_type'],
  [[], 'bool_type'],
];

test('integers are parsed like pydantic does', () => {
  for (const [value, expected] of INTEGERS) {
    const read = laxInteger(value);
    assert.deepEqual(read.ok ? read.value : read.type, expected, `of ${JSON.stringify(value)}`);
  }
});

test('booleans are parsed like pydantic does', () => {
  for (const [value, expected] of BOOLEANS) {
    const read = laxBoolean(value);
    assert.deepEqual(read.ok ? read.value : read.type, expected, `of ${JSON.stringify(value)}`);
  }
});
