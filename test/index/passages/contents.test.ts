import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { contentsOf, withContents } from '../../../src/index/passages/contents.ts';
import { runs } from '../../helpers/runs.ts';

test('contents are the column, else title and text, else the text', () => {
  assert.equal(contentsOf({ contents: 'own', title: 'T', text: 't' }), 'own');
  assert.equal(contentsOf({ title: 'T', text: 't' }), '"T"\nt');
  assert.equal(contentsOf({ title: '', text: 't' }), 't');
  assert.equal(contentsOf({ title: 7, text: 't' }), 't');
  assert.equal(contentsOf({ text: '' }), '');
  assert.equal(contentsOf({ contents: '', text: 't' }), '');
  assert.equal(contentsOf({ contents: null, text: 't' }), 't');
  assert.equal(contentsOf({ id: 1 }), undefined);
});

test('a row with contents stays unchanged, wherever the column is', () => {
  for (const document of [
    '{"id":"1","contents":"x"}',
    '{ "id" : 9007199254740993, "contents" : "x" , "weight": 1.50 }',
    '{"contents":"x","id":12345678901234567890123}',
    String.raw`{"id":"a\"b","contents":"\ud800"}`,
  ]) {
    assert.equal(withContents(document), document);
  }
});

test('contents are added at the end, and all other characters stay unchanged', () => {
  assert.equal(
    withContents('{"id": 9007199254740993, "title": "T", "text": "t", "w": 1.50 } '),
    '{"id": 9007199254740993, "title": "T", "text": "t", "w": 1.50 ,"contents":"\\"T\\"\\nt"}',
  );
  assert.equal(withContents('{"text":"}"}'), '{"text":"}","contents":"}"}');
});

test('contents that are not a string are replaced, and big numbers keep their digits', () => {
  const made = withContents('{"id":9007199254740993,"contents":null,"text":"t","w":1.50}');
  assert.match(made, /"id":9007199254740993/);
  assert.match(made, /"w":1\.50/);
  assert.equal((JSON.parse(made) as { contents: string }).contents, 't');
  assert.equal(made.match(/"contents"/g)?.length, 1);
});

test('a document that is not an object, or has no text, stays unchanged', () => {
  for (const document of ['[1]', '7', 'null', '{"id":1}', '{"id":1,"contents":5}']) {
    assert.equal(withContents(document), document);
  }
});

test('any row keeps its columns and gets the contents of contentsOf', () => {
  const rows = fc.record(
    {
      id: fc.oneof(fc.string(), fc.integer()),
      contents: fc.oneof(fc.string({ unit: 'binary' }), fc.constant(null), fc.integer()),
      title: fc.oneof(fc.string(), fc.constant(null)),
      text: fc.string({ unit: 'binary' }),
      extra: fc.jsonValue(),
    },
    { requiredKeys: [], noNullPrototype: true },
  );
  fc.assert(
    fc.property(rows, (row) => {
      const document = JSON.stringify(row);
      const read = JSON.parse(withContents(document)) as Record<string, unknown>;
      const contents = contentsOf(row as Record<string, unknown>);
      const original = JSON.parse(document) as Record<string, unknown>;
      assert.deepEqual(read, contents === undefined ? original : { ...original, contents });
    }),
    { numRuns: runs(150, 500) },
  );
});
