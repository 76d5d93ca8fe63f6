import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { rowQuery } from '../../../src/stores/opensearch/row-query.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

/** What the script does. */
function isIn(text: string, first: number, row: number): boolean {
  const i = row - first;
  return (((text.charCodeAt(Math.floor(i / 6)) - 48) >> (i % 6)) & 1) === 1;
}

test('a set of rows of any size, from any row on, is the same as text', () => {
  const random = seededRandom(4);
  for (const rows of [1, 7, 24, 25, 100, 1_003]) {
    for (const share of [0, 0.3, 1]) {
      const set = new RowBitmap(rows);
      for (let row = 0; row < rows; row++) if (random() < share) set.add(row);
      for (const [start, end] of [
        [0, rows],
        [Math.floor(rows / 2), rows],
        [0, Math.ceil(rows / 2)],
      ] as const) {
        const query = rowQuery({ type: 'bitmap', first: start, end, set }) as {
          bool: { filter: [unknown, { script: { script: { params: { first: number; set: string } } } }] };
        };
        const { params } = query.bool.filter[1].script.script;
        for (let row = start; row < end; row++) assert.equal(isIn(params.set, params.first, row), set.has(row));
      }
    }
  }
});
