import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isPythonSpace, joinWords, pythonStrip, splitWords } from '../../../indexer/prepare/python-text.ts';

test("isPythonSpace agrees with Python's str.isspace on all 65,536 code units", () => {
  const spaces = Array.from({ length: 0x10000 }, (_, code) => code).filter(isPythonSpace);
  // [c for c in range(0x10000) if chr(c).isspace()] of Python 3.11.
  const expected = [9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xa0, 0x1680];
  for (let code = 0x2000; code <= 0x200a; code++) expected.push(code);
  expected.push(0x2028, 0x2029, 0x202f, 0x205f, 0x3000);
  assert.deepEqual(spaces, expected);
});

test('joinWords puts one space between the words that splitWords found', () => {
  const text = fc.array(fc.constantFrom('a', 'bc', ' ', '\n', '\u00a0', '\ufeff', '\u001f', '\u2003', '😀'));
  fc.assert(
    fc.property(text, fc.nat(12), fc.nat(12), (parts, a, b) => {
      const joined = parts.join('');
      const words = splitWords(joined);
      // A second implementation: a regular expression with Python's white space.
      const expected =
        joined.match(/[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g) ?? [];
      assert.equal(words.count, expected.length);
      const [from, to] = [Math.min(a, b, words.count), Math.min(Math.max(a, b), words.count)];
      assert.equal(joinWords(words, from, to), expected.slice(from, to).join(' '));
    }),
  );
});

test('pythonStrip removes white space from both ends but keeps a byte order mark', () => {
  assert.equal(pythonStrip('\u00a0\x1c a b\n\u3000'), 'a b');
  assert.equal(pythonStrip('\ufeffa'), '\ufeffa');
  assert.equal(pythonStrip(' \n'), '');
});
