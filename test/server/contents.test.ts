import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentsOf, withContents, withUrl } from '../../src/index/passages/contents.ts';

test('contents are the column of the row, or "title" and text, or the text', () => {
  assert.equal(contentsOf({ contents: 'own', title: 'T', text: 'x' }), 'own');
  assert.equal(contentsOf({ title: 'T', text: 'x' }), '"T"\nx');
  assert.equal(contentsOf({ title: 'A "B"', text: 'x' }), '"A "B""\nx');
  assert.equal(contentsOf({ title: '', text: 'x' }), 'x');
  assert.equal(contentsOf({ title: 7, text: 'x' }), 'x');
  assert.equal(contentsOf({ text: '' }), '');
  assert.equal(contentsOf({ title: 'T' }), undefined);
});

test('a row with contents is returned character for character', () => {
  for (const row of [
    '{"id":"0","contents":"x"}',
    '{"id": "0",  "contents": "x", "n": 1.50, "big": 12345678901234567890}',
    '{"contents":"x","id":9007199254740993}',
    '{"id":"quote\\"d","contents":"x"}',
    '{"id":1,"cont\\u0065nts":"escaped name"}',
  ]) {
    assert.equal(withContents(row), row);
  }
});

test('missing contents are added at the end, and the rest stays unchanged', () => {
  assert.equal(
    withContents('{"id":9007199254740993, "title":"T","text":"x\\u00e9","w":1.50 }'),
    '{"id":9007199254740993, "title":"T","text":"x\\u00e9","w":1.50 ,"contents":"\\"T\\"\\nxé"}',
  );
});

test('the word contents inside a value is not the column', () => {
  const row = '{"id":"0","text":"the \\"contents\\": nothing","nested":{"contents":"no"}}';
  assert.equal((JSON.parse(withContents(row)) as { contents: string }).contents, 'the "contents": nothing');
});

test('null contents are replaced, and big numbers keep their digits', () => {
  const row = withContents('{"id":12345678901234567890,"contents":null,"title":"T","text":"x","w":1.50}');
  assert.equal(row, '{"id":12345678901234567890,"contents":"\\"T\\"\\nx","title":"T","text":"x","w":1.50}');
});

test('a row without a text stays unchanged', () => {
  for (const row of ['{}', '[]', '"text"', '{"id":1}', '{"contents":null}', '{"text":5}']) {
    assert.equal(withContents(row), row);
  }
});

test('a missing URL is added, and the rest stays unchanged', () => {
  assert.equal(
    withUrl('{"id":9007199254740993,"w":1.50}', () => 'a "b"'),
    '{"id":9007199254740993,"w":1.50,"url":"a \\"b\\""}',
  );
  assert.equal(
    withUrl('{"id":9007199254740993,"url":null,"w":1.50}', () => 'u'),
    '{"id":9007199254740993,"url":"u","w":1.50}',
  );
  assert.equal(
    withUrl('{}', () => ''),
    '{"url":""}',
  );
  for (const row of ['{"url":"own"}', '{"url":""}', '[]', '5'])
    assert.equal(
      withUrl(row, () => 'u'),
      row,
    );
});
