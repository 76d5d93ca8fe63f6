import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../../indexer/prepare/source-document.ts';
import { documentOf, KILT_PAGE } from './documents.ts';

test('KILT pages, WikiExtractor articles, rows with title and text and rows with contents are read', () => {
  assert.deepEqual(documentOf(KILT_PAGE), {
    id: '290',
    title: 'Albedo',
    url: null,
    pieces: KILT_PAGE.text,
    isKilt: true,
  });
  assert.deepEqual(documentOf({ id: '12', revid: '3', url: 'u', title: 'T', text: 'x\ny' }), {
    id: '12',
    title: 'T',
    url: 'u',
    pieces: ['x\ny'],
    isKilt: false,
  });
  assert.deepEqual(documentOf({ _id: 7, contents: '"T"\nx\ny' }), {
    id: 7,
    title: '"T"',
    url: null,
    pieces: ['x\ny'],
    isKilt: false,
  });
  assert.deepEqual(documentOf({ title: null, text: '' }), {
    id: null,
    title: null,
    url: null,
    pieces: [''],
    isKilt: false,
  });
});

test('integer ids beyond 2^53 stay exact', () => {
  const parsed = parseDocument('{"id":9007199254740993,"text":"x"}');
  assert.equal(parsed.ok && parsed.document.id, 9007199254740993n);
});

test('a line that is not a document is refused with the reason', () => {
  const reasons: readonly (readonly [string, RegExp])[] = [
    ['<doc id="1" url="u" title="T">', /not valid JSON.*--json/],
    ['{"title":"T"', /not valid JSON/],
    ['[]', /JSON object/],
    ['null', /JSON object/],
    ['{"title":"T"}', /expected "text"/],
    ['{"text":5}', /"text" is neither/],
    ['{"text":["a",5]}', /items that are not strings/],
    ['{"contents":{}}', /expected "text"/],
    ['{"id":1.5,"text":"x"}', /the id/],
    ['{"id":[],"text":"x"}', /the id/],
    ['{"title":5,"text":"x"}', /the title/],
    ['{"text":"a\\ud800b"}', /surrogate/],
    ['{"title":"\\udc00","text":"b"}', /surrogate/],
    ['{"url":"\\udc00","text":"b"}', /surrogate/],
  ];
  for (const [line, reason] of reasons) {
    const parsed = parseDocument(line);
    assert.ok(!parsed.ok, line);
    assert.match(parsed.reason, reason);
  }
  assert.ok(parseDocument('{"text":"\\ud83d\\ude00"}').ok, 'a whole pair');
});

test('a document has the columns of any collection of this field, and two that fit alike are named', () => {
  const read = documentOf({ docno: 'd', Title: 'T', body: 'x' });
  assert.deepEqual([read.id, read.title, read.pieces], ['d', 'T', ['x']]);
  assert.deepEqual(parseDocument('{"docid":"d","doc_id":"e","text":"x"}'), {
    ok: false,
    reason: '"docid" and "doc_id" may both be the id; remove one of them',
  });
});
