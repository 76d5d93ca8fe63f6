import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readParquetRows } from '../../../corpus/read-parquet.ts';
import type { MinedQuery } from '../../../training/mining/mined-query.ts';
import { ParquetRows } from '../../../training/mining/parquet-rows.ts';
import { ROW_FORMATS, type TrainingRow } from '../../../training/mining/row-formats.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { miningQuery, passage } from './mining-fixtures.ts';

const FORMATS = ['triplet', 'n-tuple', 'labeled-pair', 'labeled-list'] as const;
type Format = (typeof FORMATS)[number];

/** The rows of a query, with texts that a careless writer would change. */
function rowsOf(format: Format, outputScores: boolean, i: number): readonly TrainingRow[] {
  const mined: MinedQuery = {
    query: miningQuery({ id: `q${i}` }),
    group: 'group',
    text: `Query ${i}? 💧`,
    positives: [passage('p', `one ${i}\n"two"`, { title: 'P', rank: 2, score: 0.1 })],
    negatives: [passage('n1', '', { rank: 1, score: -2.5 }), passage('n2', `\u0000 ${'é'.repeat(i)}`, { score: 1e-9 })],
  };
  return ROW_FORMATS[format].rows(mined, { numNegatives: 2, outputScores });
}

const QUERIES = Array.from({ length: 12 }, (_, i) => i);

function encoder(format: Format, outputScores: boolean, state?: unknown): ParquetRows {
  // Row groups of a few queries.
  return new ParquetRows(ROW_FORMATS[format].columns!({ numNegatives: 2, outputScores }), state, 100);
}

/** The content of a file. `isStopped`: whether a run ends after a query and another one continues. */
function contentOf(format: Format, outputScores: boolean, isStopped: (i: number) => boolean = () => false): Buffer {
  let current = encoder(format, outputScores);
  const parts: Uint8Array[] = [current.begin()];
  for (const i of QUERIES) {
    parts.push(current.add(rowsOf(format, outputScores, i)));
    if (isStopped(i)) current = encoder(format, outputScores, JSON.parse(JSON.stringify(current.state())));
  }
  return Buffer.concat([...parts, current.end()]);
}

for (const format of FORMATS) {
  test(`${format}: a Parquet file has the rows and columns of the JSON lines`, async (t) => {
    const path = join(await tempFolder(t), 'rows.parquet');
    for (const outputScores of [false, true]) {
      writeFileSync(path, contentOf(format, outputScores));
      const rows: string[] = [];
      let groups = 0;
      for await (const some of readParquetRows(path)) {
        groups++;
        rows.push(...some.map(({ row }) => row as string));
      }
      const expected = QUERIES.flatMap((i) => rowsOf(format, outputScores, i).map(({ fields }) => fields));
      // The order of the columns is that of the inputs.
      assert.deepEqual(
        rows.map((row) => JSON.stringify(JSON.parse(row))),
        expected.map((fields) => JSON.stringify(fields)),
      );
      assert.ok(groups > 2, `${groups} row groups`);
    }
  });
}

test('a file that is continued after any query has the same bytes', () => {
  for (const format of ['triplet', 'labeled-list'] as const) {
    const whole = contentOf(format, true);
    for (const at of QUERIES) assert.ok(contentOf(format, true, (i) => i === at).equals(whole), `${format} at ${at}`);
    assert.ok(contentOf(format, true, () => true).equals(whole));
  }
});

test('a file without a row is a Parquet file with its columns', async (t) => {
  const path = join(await tempFolder(t), 'rows.parquet');
  const empty = encoder('labeled-pair', false);
  writeFileSync(path, Buffer.concat([empty.begin(), empty.end()]));
  for await (const rows of readParquetRows(path)) assert.deepEqual(rows, []);
});
