import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { columnValues } from '../../../src/engine/columns/column-values.ts';
import { columnExtremes } from '../../../src/engine/columns/row-filters.ts';
import type { StoredValue } from '../../../src/engine/filter/column.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { arbitraryRow, COLUMNS } from '../filter/arbitrary-filters.ts';
import { writeColumns } from './column-files.ts';

function compare(a: StoredValue, b: StoredValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

test('the least and the most value of rows in any order are those of the corpus, over several shards', async (t) => {
  const folder = await tempFolder(t);
  const table = fc.boolean().chain((multiple) => fc.array(arbitraryRow(multiple), { minLength: 1, maxLength: 120 }));
  await fc.assert(
    fc.asyncProperty(table, fc.nat(), fc.array(fc.nat(), { maxLength: 60 }), async (rows, cut, picked) => {
      const first = cut % (rows.length + 1);
      const sources = await writeColumns(folder, rows, COLUMNS, [first, rows.length - first]);
      const wanted = Float64Array.from(picked, (pick) => pick % rows.length);
      for (const [c, source] of sources.entries()) {
        for (const which of ['least', 'most'] as const) {
          const expected = [...wanted].map((row) => {
            const values = columnValues(rows[row], COLUMNS[c]!) as readonly StoredValue[];
            return values.toSorted(compare).at(which === 'least' ? 0 : -1);
          });
          assert.deepEqual(await columnExtremes(source.paths, { rows: wanted, which }), expected);
        }
      }
    }),
    { numRuns: runs(20, 60) },
  );
});

test('a shard without one of the rows is not read, and a missing file is named', async (t) => {
  const [source] = await writeColumns(await tempFolder(t), [{ n: 1 }, { n: 2 }], [{ name: 'n', type: 'number' }], [2]);
  const broken = [...source!.paths, '/nowhere/column-0.bin'];
  assert.deepEqual(await columnExtremes(broken, { rows: [1, 0, 1], which: 'least' }), [2, 1, 2]);
  assert.deepEqual(await columnExtremes(broken, { rows: [], which: 'least' }), []);
  await assert.rejects(
    columnExtremes(broken, { rows: [2], which: 'least' }),
    trawlError('INDEX_FILE_MISSING', /column-0\.bin/),
  );
});
