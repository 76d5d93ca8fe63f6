import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importVectors, queriesOfIds } from '../../../bench/reproduce/published-vectors.ts';
import { encodeNpy } from '../../../bench/vectors/npy.ts';
import { runTrawl } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('vectors without texts are searched under their ids by the vectors of queries', async (t) => {
  const folder = await tempFolder(t);
  const npy = async (name: string, ...rows: number[][]): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, encodeNpy({ rows: rows.length, columns: 2, values: Float32Array.from(rows.flat()) }));
    return path;
  };
  const ids = { passages: join(folder, 'corpus_ids.txt'), queries: join(folder, 'query_ids.txt') };
  await writeFile(ids.passages, '40\n7\n31\n');
  await writeFile(ids.queries, '5\tsome text\n3\tsome text\n');
  const vectors = await npy('corpus.npy', [1, 0], [0, 1], [2, 2]);
  const work = join(folder, 'work');
  const index = await importVectors(vectors, ids.passages, work);
  assert.equal(await importVectors(vectors, ids.passages, work), index, 'made again in the same folder');

  const queries = ['--query-vectors', await npy('queries.npy', [1, -0.75], [0, 1])];
  const texts = ['--queries', await queriesOfIds(ids.queries, work)];
  const out = join(folder, 'run.txt');
  const format = ['--out', out, '--out-format', 'trec', '--k', '2'];
  const { code, stderr } = await runTrawl(['search', index, ...queries, ...texts, ...format]);
  assert.equal(code, 0, stderr);
  const found = (await readFile(out, 'utf8')).trimEnd().split('\n');
  assert.deepEqual(
    found.map((line) => line.split(/\s+/).slice(0, 5)),
    [
      ['5', 'Q0', '40', '1', '1'],
      ['5', 'Q0', '31', '2', '0.5'],
      ['3', 'Q0', '31', '1', '2'],
      ['3', 'Q0', '7', '2', '1'],
    ],
  );
});
