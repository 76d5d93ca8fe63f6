import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  documentOf,
  entityOf,
  FILLED_PIECE_BYTES,
  idOf,
  MAX_DOCUMENT_BYTES,
} from '../../../src/stores/milvus/published-rows.ts';
import { ContentSum, lookupHash, PIECE_BYTES } from '../../../src/stores/published/published-row.ts';

const lookups = { id: null, url: null, title: null, document: null };
const vector = Float32Array.of(1, 2);

test('a document of any length is divided between characters and joined again', () => {
  for (const character of ['a', 'é', '€', '😀']) {
    for (const length of [0, 1, 16_383, 21_845, 65_535, 65_536, 200_000]) {
      const document = `x${character.repeat(length)}`;
      const bytes = Buffer.byteLength(document);
      if (bytes > MAX_DOCUMENT_BYTES) continue;
      const pieces = Math.max(1, Math.ceil(bytes / FILLED_PIECE_BYTES));
      const entity = entityOf({ row: 1, vector, document, id: null, lookups, keys: [] }, { pieces });
      assert.equal(documentOf(entity, pieces), document);
      for (const [name, text] of Object.entries(entity)) {
        if (name.startsWith('document'))
          assert.ok(Buffer.byteLength(String(text)) <= PIECE_BYTES, `${name} of ${bytes}`);
      }
    }
  }
});

test('an empty id differs from none', () => {
  for (const id of [null, '', '=', 'row:1', '7']) {
    assert.equal(idOf(entityOf({ row: 1, vector, document: '{}', id, lookups, keys: [] }, { pieces: 1 })), id);
  }
});

test('a look-up finds keys of the same type alone, as in a folder', () => {
  assert.equal(lookupHash('id', 'a'), lookupHash('id', 'a'));
  assert.equal(lookupHash('document', 7), lookupHash('document', 7n));
  const all = [
    lookupHash('id', '7'),
    lookupHash('id', 7n),
    lookupHash('url', '7'),
    lookupHash('title', '7'),
    lookupHash('id', ''),
  ];
  assert.equal(new Set(all).size, all.length);
  assert.ok(all.every((hash) => BigInt(hash) > 0n && BigInt(hash) < 2n ** 63n));
  assert.equal(lookupHash('id', null), '0');
  assert.equal(lookupHash('document', 7.5), '0');
});

test('the checksum of rows depends on every part of them, and not on their order', () => {
  const rows = [
    { row: 0, vector, id: 'a', document: '{"x":1}', keys: ['1', '2'] },
    { row: 1, vector: Float32Array.of(3, -0), id: null, document: '{}', keys: ['1', '2'] },
  ];
  const sumOf = (all: typeof rows, start?: string): string => {
    const sum = new ContentSum(start);
    for (const row of all) sum.add(row);
    return sum.hex;
  };
  const whole = sumOf(rows);
  assert.equal(sumOf(rows.toReversed()), whole);
  assert.equal(sumOf(rows.slice(1), sumOf(rows.slice(0, 1))), whole);
  const changes = [
    { row: 2 },
    { vector: Float32Array.of(3, 0) },
    { id: '' },
    { document: '{ }' },
    { keys: ['1', '3'] },
  ];
  for (const change of changes) assert.notEqual(sumOf([rows[0]!, { ...rows[1]!, ...change }]), whole);
  assert.notEqual(sumOf([rows[0]!]), whole);
});
