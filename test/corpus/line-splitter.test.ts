import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { LineSplitter, type Newline, type RawLine } from '../../corpus/line-splitter.ts';

function split(chunks: readonly Uint8Array[], newline: Newline, maxLineBytes = 1_000_000): RawLine[] {
  const splitter = new LineSplitter({ newline, maxLineBytes });
  return [...chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk))), ...splitter.end()];
}

function texts(lines: readonly RawLine[]): (string | undefined)[] {
  return lines.map(({ bytes }) => bytes?.toString('latin1'));
}

function cut(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const ends = [...positions.map((position) => position % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

/** Short pieces, so that line ends are adjacent and at chunk borders. */
const text = fc.array(fc.constantFrom('\n', '\r', '\r\n', 'a', 'bc', '\u0085', ' '), { maxLength: 40 });

test('lines do not depend on the chunk borders', () => {
  fc.assert(
    fc.property(
      text,
      fc.array(fc.nat(100)),
      fc.constantFrom<Newline>('lf', 'universal'),
      (pieces, positions, newline) => {
        const bytes = Buffer.from(pieces.join(''), 'latin1');
        assert.deepEqual(split(cut(bytes, positions), newline), split([bytes], newline));
      },
    ),
  );
});

test('lf splits at \\n alone', () => {
  fc.assert(
    fc.property(text, (pieces) => {
      const whole = pieces.join('');
      const expected = whole.split('\n');
      if (expected.at(-1) === '') expected.pop();
      assert.deepEqual(texts(split([Buffer.from(whole, 'latin1')], 'lf')), expected);
    }),
  );
});

test('universal splits at \\n, \\r\\n and \\r', () => {
  fc.assert(
    fc.property(text, (pieces) => {
      const whole = pieces.join('');
      const expected = whole.split(/\r\n|\r|\n/);
      if (expected.at(-1) === '') expected.pop();
      assert.deepEqual(texts(split([Buffer.from(whole, 'latin1')], 'universal')), expected);
    }),
  );
});

test('lines are numbered from 1 and blank ones count', () => {
  const lines = split([Buffer.from('a\n\nb')], 'lf');
  assert.deepEqual(
    lines.map(({ number }) => number),
    [1, 2, 3],
  );
});

test('a line over the limit is reported with its size but without its bytes, and the next one is read', () => {
  const bytes = Buffer.from('ab\nabcd\nabc');
  for (const chunks of [[bytes], [...bytes].map((byte) => Uint8Array.of(byte))]) {
    const lines = split(chunks, 'lf', 3);
    assert.deepEqual(texts(lines), ['ab', undefined, 'abc']);
    assert.equal(lines[1]?.sizeBytes, 4);
  }
});

test('an over-long last line without a line end is reported too', () => {
  assert.deepEqual(texts(split([Buffer.from('abcd')], 'lf', 3)), [undefined]);
});

test('empty input has no lines', () => {
  assert.deepEqual(split([], 'lf'), []);
  assert.deepEqual(split([Buffer.alloc(0)], 'universal'), []);
});
