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
  assert.deepEqual(parseExtraListener('8001=browsecomp-plus:topk=5', 'localhost').settings, { topk: 5 });
  const view = { view: 'train_2023.10' };
  assert.deepEqual(parseExtraListener('5003:view=train_2023.10', 'localhost').settings, view);
});

test('a filter is the last setting, with any characters', () => {
  const { port, settings } = parseExtraListener(
    "8001=search-r1:topk=5:filter=source = 'a:b' and year >= 2014",
    'localhost',
  );
  const source = { column: 'source', op: '=', value: 'a:b' };
  assert.deepEqual(
    [port, settings],
    [8001, { topk: 5, filter: { and: [source, { column: 'year', op: '>=', value: 2014 }] } }],
  );
  const fault = trawlError('USAGE', /^--listen 8001=search-r1:filter: The filter cannot be read/);
  assert.throws(() => parseExtraListener('8001=search-r1:filter=year >', 'localhost'), fault);
  assert.throws(() => parseExtraListener('8001:filter=', 'localhost'), trawlError('USAGE'));
});

test('the settings of hybrid search come one by one', () => {
  const settings = (text: string) => parseExtraListener(`8001:${text}`, 'localhost').settings;
  assert.deepEqual(settings('mode=hybrid:hybrid-fusion=rrf:hybrid-weights=dense=0.25,bm25=2:hybrid-depth=50'), {
    mode: 'hybrid',
    hybrid: { fusion: 'rrf', denseWeight: 0.25, bm25Weight: 2, depth: 50 },
  });
  assert.deepEqual(settings('hybrid-weights=bm25=1'), { hybrid: { bm25Weight: 1 } });
  for (const text of ['0.5', 'dense=0,bm25=0', 'dense=x', 'words=1']) {
    assert.throws(() => settings(`hybrid-weights=${text}`), trawlError('USAGE'), text);
  }
});

test('an unknown setting or an invalid value of one is refused with the allowed settings', () => {
  for (const text of [
    '5003:truncate=head',
    '5003:truncate=1',
    '5003:deadline-ms=soon',
    '5003:topk=0',
    '5003:top=3',
    '5003:hybrid-depth=0',
    '5003:hybrid-depth=ten',
    '5003:deadline-ms=1234567890',
    '5003:view=a/b',
    '5003:view=a,b',
    '5003:truncate',
  ]) {
    assert.throws(() => parseExtraListener(text, 'localhost'), trawlError('USAGE', /:truncate=tail\|question/), text);
  }
});
