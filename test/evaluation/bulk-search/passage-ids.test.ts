import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PassageIds } from '../../../evaluation/bulk-search/passage-ids.ts';
import type { PassageStore } from '../../../src/index/passages/passage-store.ts';
import { SqlitePassageStore } from '../../../src/index/passages/sqlite-passage-store.ts';
import { SqlitePassageWriter } from '../../../src/index/passages/sqlite-passage-writer.ts';
import type { Hit } from '../../../src/search/calls/query-outcome.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const NEVER = new AbortController().signal;
const ROWS = [5_000, 1_200] as const;

/** Every third row has an integer beyond 2^53, every third a text, the others none. */
function idOf(row: number): string | bigint | null {
  return row % 3 === 0 ? 9_007_199_254_740_993n + BigInt(row) : row % 3 === 1 ? `p"é${row}` : null;
}

function hit(row: number): Hit {
  return { row, score: 1, document: '' };
}

interface Opened {
  readonly ids: PassageIds;
  /** Rows that were read one after another. */
  readonly asked: number[];
}

/** Two shards. */
async function open(t: TestContext): Promise<Opened> {
  const folder = await tempFolder(t);
  const shards = ROWS.map((rows, i) => ({ path: join(folder, `${i}.sqlite`), firstRow: i === 0 ? 0 : ROWS[0], rows }));
  for (const { path, firstRow, rows } of shards) {
    const writer = new SqlitePassageWriter(path);
    for (let row = 0; row < rows; row++) {
      writer.append({ id: idOf(firstRow + row), line: row + 1, document: `{"contents":"text ${row}"}` });
    }
    writer.finishRows();
    writer.finish();
  }
  const store = await SqlitePassageStore.open(shards);
  const asked: number[] = [];
  const watched: PassageStore = {
    rows: store.rows,
    failure: undefined,
    getMany: (rows, signal) => store.getMany(rows, signal),
    find: (by, keys, limit, signal) => store.find(by, keys, limit, signal),
    close: () => store.close(),
    idsOf: (rows, signal) => {
      asked.push(...Array.from(rows));
      return store.idsOf(rows, signal);
    },
  };
  const ids = new PassageIds([{ name: undefined, store: watched, shards }]);
  t.after(() => ids.close());
  return { ids, asked };
}

const EXPECTED = Array.from({ length: ROWS[0] + ROWS[1] }, (_, row) => String(idOf(row) ?? `row:${row}`));

test('each id is read once, and the ids are those of the hits in their order', async (t) => {
  const { ids, asked } = await open(t);
  const lists = [[hit(6_199), hit(0)], [], [hit(0), hit(1), hit(2), hit(5_000)]];
  for (let turn = 0; turn < 2; turn++) {
    assert.deepEqual(await ids.of(lists, NEVER), [
      [EXPECTED[6_199], EXPECTED[0]],
      [],
      [EXPECTED[0], EXPECTED[1], EXPECTED[2], EXPECTED[5_000]],
    ]);
  }
  assert.deepEqual(
    asked.toSorted((a, b) => a - b),
    [0, 1, 2, 5_000, 6_199],
  );
});

test('with as many hits to come as rows, all ids are read in row order, and are the same', async (t) => {
  const { ids, asked } = await open(t);
  await ids.readAll(EXPECTED.length, NEVER);
  assert.deepEqual(await ids.of([EXPECTED.map((_, row) => hit(row))], NEVER), [EXPECTED]);
  assert.deepEqual(asked, []);
});

test('with fewer hits to come, only the ids of hits are read', async (t) => {
  const { ids, asked } = await open(t);
  await ids.readAll(EXPECTED.length - 1, NEVER);
  assert.deepEqual(await ids.of([[hit(7)]], NEVER), [[EXPECTED[7]]]);
  assert.deepEqual(asked, [7]);
});

test('reading all ids can be cancelled', async (t) => {
  const { ids } = await open(t);
  await assert.rejects(ids.readAll(EXPECTED.length, AbortSignal.abort()), trawlError('CANCELLED'));
});
