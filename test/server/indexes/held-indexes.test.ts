import assert from 'node:assert/strict';
import { readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { test } from 'node:test';
import { HeldIndexes } from '../../../src/server/indexes/held-indexes.ts';
import { fileFolder, sampleIndex } from '../../cli/run-trawl.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const index = await sampleIndex(await fileFolder());
const skip = process.platform !== 'linux' && 'needs /proc/self/fd';
const NAMES = Array.from({ length: 8 }, (_, i) => `index-${i}`);

/** Files of the index that this process has open. */
function openFiles(): number {
  const folder = realpathSync(index);
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
    } catch {
      // That of the listing itself.
      return false;
    }
  }).length;
}

test('copies of one index that begin at once share its files, which are closed with the server', { skip }, async () => {
  const held = new HeldIndexes();
  for (const name of NAMES) await held.hold(name, index);
  const perIndex = openFiles() / NAMES.length;
  // There is no room, so an index is closed first.
  const copies = await Promise.all(Array.from({ length: 4 }, () => held.hold('another', index)));
  assert.equal(new Set(copies).size, 1);
  assert.equal(openFiles(), perIndex * NAMES.length);
  const use = held.use('another', copies[0]!.snapshot.id)!;
  assert.equal(use.index, copies[0]);
  use.release();
  await held.close();
  assert.equal(openFiles(), 0);
});

test('a server that stops while an index is opened keeps no file open and says that it stops', { skip }, async () => {
  for (const before of [[], NAMES]) {
    const held = new HeldIndexes();
    for (const name of before) await held.hold(name, index);
    const opening = held.hold('another', index);
    await held.close();
    await assert.rejects(opening, trawlError('NOT_READY', /stopping/));
    assert.equal(openFiles(), 0);
  }
});

test('an index is refused with a way out while clients copy from all indexes that may be open', { skip }, async () => {
  const held = new HeldIndexes();
  for (const name of NAMES) held.use(name, (await held.hold(name, index)).snapshot.id);
  await assert.rejects(held.hold('another', index), trawlError('OVERLOADED', /Try again when a copy has ended/));
  await held.close();
});
