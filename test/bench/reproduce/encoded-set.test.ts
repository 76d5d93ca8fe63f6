import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { embedQuestions, vectorsByText, writeIds } from '../../../bench/reproduce/encoded-set.ts';
import { serveVectorReranker } from '../../../bench/reproduce/vector-reranker.ts';
import { decodeNpy, encodeNpy } from '../../../bench/vectors/npy.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { HttpReranker } from '../../../src/encoder/rerank/http-reranker.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const lines = (...objects: object[]): string => objects.map((object) => `${JSON.stringify(object)}\n`).join('');

test('a reranker of known vectors gives their inner products to the client of rerank servers, and refuses other texts', async (t) => {
  const vectors = new Map([
    ['query', new Float32Array([1, 2])],
    ['near', new Float32Array([3, 4])],
    ['far', new Float32Array([-1, 0.5])],
  ]);
  const server = await serveVectorReranker(vectors);
  t.after(() => server.close());
  const reranker = await HttpReranker.open(server.url);
  t.after(() => reranker.close());
  const [known, unknown] = (
    await reranker.score([
      { query: 'query', passages: ['far', 'near'] },
      { query: 'query', passages: ['unknown'] },
    ])
  ).outcomes;
  assert.deepEqual(known?.ok && [...known.scores], [0, 11]);
  assert.equal(unknown?.ok === false && unknown.error.code, 'RERANK_REFUSED');
});

test('questions get the vectors of a search, in the order of the file, and are found by text with the passages', async (t) => {
  const folder = await tempFolder(t);
  const set = { corpus: join(folder, 'corpus.jsonl'), queries: join(folder, 'queries.jsonl') };
  await writeFile(set.corpus, lines({ id: 'p1', contents: 'one' }, { id: 'p2', title: 'Two', text: 'two' }));
  await writeFile(set.queries, lines({ id: 'q1', question: 'who' }, { id: 'q2', question: 'what is it' }));
  const files = { passages: join(folder, 'passages.npy'), queries: join(folder, 'queries.npy') };
  await embedQuestions(set, { model: 'token-average-256' }, files.queries);
  const encoder = await openEncoder('token-average-256');
  t.after(() => encoder.close());
  const { vectors } = await encoder.encode(['who', 'what is it'], { inputType: 'query' });
  const written = decodeNpy(await readFile(files.queries), files.queries);
  assert.deepEqual([written.rows, written.columns], [2, encoder.dimension]);
  assert.deepEqual(written.values, vectors);

  const columns = encoder.dimension;
  const values = Float32Array.from({ length: 2 * columns }, (_, i) => i);
  await writeFile(files.passages, encodeNpy({ rows: 2, columns, values }));
  const byText = await vectorsByText(set, files);
  assert.deepEqual([...byText.keys()], ['one', '"Two"\ntwo', 'who', 'what is it']);
  assert.deepEqual(byText.get('"Two"\ntwo'), values.subarray(columns));
  assert.deepEqual(byText.get('what is it'), vectors.subarray(columns));
  const ids = await writeIds(set, join(folder, 'runs'));
  assert.deepEqual(
    [await readFile(ids.passages, 'utf8'), await readFile(ids.queries, 'utf8')],
    ['p1\np2\n', 'q1\nq2\n'],
  );
});
