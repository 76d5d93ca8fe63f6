import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type PassageReader, StoredPassages } from '../../../src/stores/published/stored-passages.ts';

/** Passages that are read one row at a time, as those of long documents are. */
function passagesOf(documents: PassageReader['documents'], end: () => Promise<void>): StoredPassages {
  const reader: PassageReader = { documents, ids: async () => [], lookUp: async () => [] };
  return new StoredPassages(reader, { rows: 20, pieces: 1_000, lookups: [], isDeleted: () => false }, end);
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
