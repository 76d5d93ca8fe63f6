import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExtraListener } from '../../../cli/serve/extra-listener.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('a --listen address has a port and optionally a host, a dialect and settings', () => {
  assert.deepEqual(parseExtraListener('5003', '127.0.0.1'), {
    host: '127.0.0.1',
    port: 5003,
    dialect: undefined,
    settings: {},
  });
  assert.deepEqual(
    parseExtraListener('[::1]:8001=search-r1:deadline-ms=28000:shed-after-ms=20000:truncate=question', '127.0.0.1'),
    {
      host: '::1',
      port: 8001,
      dialect: 'search-r1',
      settings: { deadlineMs: 28_000, shedAfterMs: 20_000, truncate: 'question' },
    },
  );
  assert.deepEqual(parseExtraListener('5003:truncate=tail', 'localhost').settings, { truncate: 'tail' });
});

test('an unknown setting or an invalid value of one is refused with the allowed settings', () => {
  for (const text of [
    '5003:truncate=head',
    '5003:truncate=1',
    '5003:deadline-ms=soon',
    '5003:topk=3',
    '5003:truncate',
  ]) {
    assert.throws(() => parseExtraListener(text, 'localhost'), trawlError('USAGE', /:truncate=tail\|question/), text);
  }
});
