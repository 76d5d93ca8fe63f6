import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseColumns } from '../../../src/engine/filter/column.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { columnKey } from '../../../src/stores/milvus/column-keys.ts';
import { LocalRows } from '../../../src/stores/publish/local-rows.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { build, writeCorpus } from '../../indexer/build.ts';

test('two shards can be read at the same time, each with its own columns', async (t) => {
  const folder = await tempFolder(t);
  const passages = Array.from({ length: 8 }, (_, i) => ({
    id: `p${i}`,
    contents: `passage ${i}`,
    year: 2000 + i,
    page: i,
  }));
  const corpus = writeCorpus(folder, { 'c.jsonl': passages });
  const out = join(folder, 'ix');
  await build({ corpus, out, columns: parseColumns(['year:number', 'page:number']), shardRows: 4 });
  const local = new LocalRows(openIndexDirectory(out));
  t.after(() => local.close());
  const parts = await Promise.all([0, 4, 2, 6].map((first) => local.range(first, first + 1, [0, 1])));
  assert.deepEqual(
    parts.map(([row]) => row!.keys),
    [0, 4, 2, 6].map((row) => [columnKey(2000 + row), columnKey(row)]),
  );
});
