import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkRow } from '../../../corpus/check-row.ts';
import type { LexicalField } from '../../../src/engine/lexical/lexical-settings.ts';
import { sourceOfRow, writtenRow } from '../../../src/index/document-store/written-row.ts';
import { documentFields, fieldText } from '../../../src/index/passages/document-fields.ts';

const text = fc.string({ unit: 'binary' });
const document = fc.record(
  {
    id: fc.oneof(text, fc.integer()),
    title: text,
    text,
    contents: text,
    url: text,
    meta: fc.object(),
    Title: text,
    TITLE: text,
    body: text,
  },
  { requiredKeys: [] },
);

test('the row of a document is a passage with the id of the document, and gives the document back', () => {
  fc.assert(
    fc.property(document, fc.string({ minLength: 1 }), fc.boolean(), (members, id, together) => {
      const fields: LexicalField[] = together ? ['contents'] : ['title', 'text'];
      const source = JSON.stringify(members);
      const row = writtenRow({ name: 'wiki_en', fields }, id, source);
      assert.equal(sourceOfRow(row), source);
      const read = checkRow(1, JSON.parse(row), row);
      assert.ok(read.ok, row);
      assert.deepEqual([read.id, read.document], [id, row]);
      const found = documentFields(row);
      assert.equal(found.id, id);
      if (together) assert.equal(found.contents, members.contents ?? '');
      else assert.deepEqual([found.title ?? '', found.text], [members.title ?? '', members.text ?? '']);
    }),
  );
});

test('other routes get the searched text of a document without text', () => {
  const fields = ['title', 'txt', 'meta.notes'];
  const source = '{"title": null, "txt": ["a", "b"], "meta": {"notes": "c"}, "contents": 5}';
  const row = writtenRow({ name: 'ix', fields }, '1', source);
  assert.equal(sourceOfRow(row), source);
  assert.deepEqual(
    { ...documentFields(row), document: undefined },
    { ...documentFields('{"_index":"ix","_id":"1","text":"a\\nb\\nc"}'), document: undefined },
  );
  assert.equal(documentFields(row).title, undefined);
  assert.equal(fieldText(row, 'txt'), 'a\nb');
});

test('a row of another corpus stays as it is', () => {
  for (const row of ['{"id":"1","text":"a"}', '{"_id":"1","text":"_index"}', '{"text":"","_id":"1"}', '{}']) {
    assert.equal(sourceOfRow(row), row);
  }
});

test('spaces around the members of a document stay, and a document without members has none', () => {
  assert.equal(
    sourceOfRow(writtenRow({ name: 'ix', fields: ['title', 'text'] }, 'a"\\', '{"text": "x" , "n" : 1.0}')),
    '{"text": "x" , "n" : 1.0}',
  );
  assert.equal(sourceOfRow(writtenRow({ name: 'ix', fields: ['contents'] }, 'a', '{ }')), '{}');
});
