import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryAfterMs } from '../../../src/base/net/retries.ts';

test('a pause is read from retry-after-ms, or from Retry-After in seconds or as a date', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  for (const [headers, expected] of [
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': ' 0.5 ' }, 500],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:20 GMT' }, 20_000],
    [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:00 GMT' }, 0],
    [{ 'retry-after-ms': '12.5', 'retry-after': '3' }, 12.5],
    [{ 'retry-after-ms': 'x', 'retry-after': '3' }, 3000],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-1e9' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': '1e9' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{ 'retry-after': '99999999999999' }, undefined],
    [{}, undefined],
  ] as const) {
    assert.equal(retryAfterMs(new Headers(headers), now), expected, JSON.stringify(headers));
  }
});
