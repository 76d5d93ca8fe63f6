import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jsonFaultAt } from '../../src/server/json-body.ts';
import { runs } from '../helpers/runs.ts';

const SEED = 20_261_202;

test('the fault is the first character that JSON does not allow', () => {
  for (const [text, position] of [
    ['{"a": True}', 6],
    ["{'a': 1}", 1],
    ['{a: 1}', 1],
    ['{"a" 1}', 5],
    ['{"a": 1,}', 8],
    ['{"a": 1 "b": 2}', 8],
    ['[1 2]', 3],
    ['[1,]', 3],
    ['[,1]', 1],
    ['[1}', 2],
    ['{"a": 1]', 7],
    [']', 0],
    ['1 2', 2],
    ['{} {}', 3],
    ['01', 1],
    ['+1', 0],
    ['-', 0],
    ['1.x', 1],
    ['[NaN]', 1],
    ['[nulL]', 1],
    ['"a\nb"', 2],
    ['"\\x"', 2],
    ['"\\u00g0"', 5],
    ['\u00a01', 0],
    [' at position 7 ', 1],
  ] as const) {
    assert.throws(() => JSON.parse(text), text);
    assert.equal(jsonFaultAt(text), position, text);
  }
});

test('valid JSON has no fault, and the fault of its beginning is the end', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), fc.nat(), (json, at) => {
      assert.equal(jsonFaultAt(json), json.length);
      const part = json.slice(0, at % json.length);
      // A number that ends after its minus sign, point or exponent is reported at that character.
      if (!/[-.eE+]$/.test(part)) assert.equal(jsonFaultAt(part), part.length, part);
    }),
    { numRuns: runs(400, 2_000), seed: SEED },
  );
});

test('a control character is the fault, unless it is within a number or literal', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), fc.nat(), (json, at) => {
      const position = at % json.length;
      if (/[\w.+-]$/.test(json.slice(0, position)) && /^[\w.+-]/.test(json.slice(position))) return;
      // After a backslash the escape is wrong, at the same position.
      const broken = `${json.slice(0, position)}\u0001${json.slice(position)}`;
      assert.equal(jsonFaultAt(broken), position, JSON.stringify(broken));
    }),
    { numRuns: runs(400, 2_000), seed: SEED },
  );
});

test('a million open lists, and a text of millions of characters, overflow no stack', () => {
  assert.equal(jsonFaultAt('['.repeat(1_000_000)), 1_000_000);
  assert.equal(jsonFaultAt(`"${'a'.repeat(20_000_000)}"x`), 20_000_002);
  assert.equal(jsonFaultAt(`${'1'.repeat(20_000_000)}x`), 20_000_000);
});
