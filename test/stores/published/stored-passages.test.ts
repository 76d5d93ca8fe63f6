import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { lookupHash, PIECE_BYTES } from '../../../src/stores/published/published-row.ts';
import {
  FIRST_FILE_PART,
  type PartStore,
  readFile,
  readRecord,
  type StoredPart,
  writeFile,
  writeRecord,
} from '../../../src/stores/published/stored-files.ts';
import { type PassageReader, storedPassages } from '../../../src/stores/published/stored-passages.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** Passages that are read one row at a time, as those of long documents are. */
function passagesOf(documents: PassageReader['documents'], end: () => Promise<void>) {
  const reader: PassageReader = { documents, ids: async () => [], lookUp: async () => [] };
  return storedPassages(reader, { rows: 20, pieces: 1_000, lookups: [], liveRows: undefined }, end);
}

test('documents are in the order of the rows, repeated ones included', async () => {
  const passages = passagesOf(
    async (rows) => {
      await sleep(5 - (rows[0]! % 5));
      return rows.map((row) => `document ${row}`);
    },
    async () => undefined,
  );
  const rows = [19, 3, 3, 0, 7, 19, 12];
  assert.deepEqual(
    await passages.getMany(rows),
    rows.map((row) => `document ${row}`),
  );
});

test('a look-up in a store names an integer id by its one text, and a string by itself', async () => {
  const ids = [7n, '007', '7', 9007199254740993n, '12345678901234567890'];
  const rows = ids.map((id, row) => ({ row, hash: lookupHash('id', id) }));
  const reader: PassageReader = {
    documents: async () => [],
    ids: async () => [],
    lookUp: async (_, hashes) => rows.filter(({ hash }) => hashes.includes(hash)),
  };
  const facts = { rows: 5, pieces: 1, lookups: ['id' as const], liveRows: undefined };
  const passages = storedPassages(reader, facts, async () => undefined);
  const found = await passages.find(
    'id',
    ['7', '007', '0007', '+7', ' 7', '9007199254740993', '12345678901234567890'],
    9,
  );
  assert.deepEqual(found, [[0, 2], [1], [], [], [], [3], [4]]);
});

test('after a failed read the others are stopped, and the store is closed only when they have ended', async () => {
  const events: string[] = [];
  const passages = passagesOf(
    async ([row], signal) => {
      events.push(`${row} begins`);
      if (row === 1) throw new Error('the store is gone');
      await sleep(5);
      events.push(`${row} ends${signal?.aborted ? ', aborted' : ''}`);
      return [`document ${row}`];
    },
    async () => void events.push('closed'),
  );
  const reading = passages.getMany([...Array(20).keys()]);
  await assert.rejects(reading, /the store is gone/);
  await passages.close();
  assert.deepEqual(events, [
    ...['0 begins', '1 begins', '2 begins', '3 begins'],
    ...['0 ends, aborted', '2 ends, aborted', '3 ends, aborted', 'closed'],
  ]);
});

/** Keeps parts as Milvus does: as base64 texts with its limit, and returns them in another order. */
function milvusLike(): { store: PartStore; texts: Map<number, string> } {
  const texts = new Map<number, string>();
  const store: PartStore = {
    place: 'the test',
    write: async (parts) => {
      for (const { place, bytes } of parts) {
        const text = bytes.toString('base64');
        assert.ok(text.length <= PIECE_BYTES, `a text of ${text.length} characters`);
        texts.set(place, text);
      }
    },
    read: async (first, end) =>
      [...texts]
        .filter(([place]) => place >= first && place < end)
        .map(([place, text]): StoredPart => ({ place, bytes: Buffer.from(text, 'base64') }))
        .reverse(),
  };
  return { store, texts };
}

test('files of any size fit into the texts of Milvus, and are read as they were', async () => {
  for (const bytes of [0, 1, 47_999, 48_000, 49_152, 400_000, 2_000_000]) {
    const { store } = milvusLike();
    const content = randomBytes(bytes);
    assert.deepEqual(await readFile(store, await writeFile(store, FIRST_FILE_PART, content)), content);
    const record = { words: content.toString('hex') };
    await writeRecord(store, 0, record);
    assert.deepEqual(await readRecord(store, 0), record);
  }
});

test('a file that an earlier version stored in larger parts is read as it was', async () => {
  const { store, texts } = milvusLike();
  const content = randomBytes(400_000);
  const stored = await writeFile(store, FIRST_FILE_PART, content);
  texts.clear();
  const parts = Math.ceil(content.length / 49_152);
  for (let part = 0; part < parts; part++) {
    texts.set(FIRST_FILE_PART + part, content.subarray(part * 49_152, (part + 1) * 49_152).toString('base64'));
  }
  assert.deepEqual(await readFile(store, { ...stored, parts }), content);
});

test('a file with a missing part is refused', async () => {
  const { store, texts } = milvusLike();
  const stored = await writeFile(store, FIRST_FILE_PART, randomBytes(200_000));
  texts.delete(FIRST_FILE_PART + 1);
  await assert.rejects(readFile(store, stored), trawlError('STORE_DIFFERS', /has the checksum .*, expected/));
});
