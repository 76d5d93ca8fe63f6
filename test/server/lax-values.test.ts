import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TSchema, Type } from 'typebox';
import { readRequest } from '../../src/server/dialects/parts/read-request.ts';
import { RequestError } from '../../src/server/errors/request-error.ts';

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

/** The value that a field of a request gets, or the type of its fault. */
function readAs(type: TSchema, value: unknown): unknown {
  try {
    const most = { items: 1, characters: 1_000_000 };
    return (readRequest(Type.Object({ value: type }), { value }, most) as { value: unknown }).value;
  } catch (error) {
    assert.ok(error instanceof RequestError);
    return error.issues[0]!.type;
  }
}

test('integers are parsed like pydantic does', () => {
  for (const [value, expected] of INTEGERS) {
    assert.deepEqual(readAs(Type.Integer(), value), expected, `of ${JSON.stringify(value)}`);
  }
});

test('booleans are parsed like pydantic does', () => {
  for (const [value, expected] of BOOLEANS) {
    assert.deepEqual(readAs(Type.Boolean(), value), expected, `of ${JSON.stringify(value)}`);
  }
});
