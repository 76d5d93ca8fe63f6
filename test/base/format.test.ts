import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBytes, formatCount, formatDuration, printable } from '../../src/base/format.ts';

test('bytes have decimal units, and fewer than four digits before the point up to TB', () => {
  assert.equal(formatBytes(0), '0 B');
  assert.equal(formatBytes(999), '999 B');
  assert.equal(formatBytes(1000), '1.00 KB');
  assert.equal(formatBytes(999_949), '999.9 KB');
  assert.equal(formatBytes(999_950), '1.00 MB');
  assert.equal(formatBytes(64_557_000_000), '64.6 GB');
  assert.equal(formatBytes(5e15), '5000.0 TB');
});

test('counts have commas', () => {
  assert.equal(formatCount(999), '999');
  assert.equal(formatCount(21_015_324), '21,015,324');
});

test('durations have at most two units, and rounding carries over to the next unit', () => {
  assert.equal(formatDuration(0.04), '0.0 ms');
  assert.equal(formatDuration(9.96), '10 ms');
  assert.equal(formatDuration(999.4), '999 ms');
  assert.equal(formatDuration(999.6), '1.0 s');
  assert.equal(formatDuration(59_949), '59.9 s');
  assert.equal(formatDuration(59_960), '1 min 0 s');
  assert.equal(formatDuration(119_600), '2 min 0 s');
  assert.equal(formatDuration(3_599_700), '1 h 0 min');
  assert.equal(formatDuration(5_400_000), '1 h 30 min');
});

test('control characters are escaped before a text is printed on a terminal', () => {
  assert.equal(printable('one\n\ttwo — “三”'), 'one\n\ttwo — “三”');
  assert.equal(printable('a\u001b[31mred\u009b\r\u202eb'), 'a\\u{1b}[31mred\\u{9b}\\u{d}\\u{202e}b');
});
