import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeNpy } from '../../../bench/vectors/npy.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { openIndexEncoder } from '../../../src/search/opening/open-index-encoder.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { jsonOf, runTrawl } from '../run-trawl.ts';
import { index, type Line, linesOf, parquetOf, QUERIES, queries, search, textOf } from './searched-index.ts';

test('all formats have the hits of single calls, queries of one id and several rounds apart and in order', async (t) => {
  const cwd = await tempFolder(t);
  const lines = linesOf(await search(join(cwd, 'hits.jsonl')));
  const asked = readFileSync(queries, 'utf8')
    .trim()
    .split('\n')
    .map(
      (line) =>
        JSON.parse(line) as {
          id: string;
          question: string;
          query?: string;
          history_queries?: string[];
          round_index: number;
        },
    );
  assert.deepEqual(
    lines.map(({ id, round_index }) => [id, round_index]),
    asked.map(({ id, round_index }) => [id, round_index]),
  );
  const retriever = await openRetriever(index);
  t.after(() => retriever.close());
  for (const place of [0, 1, 20, 255, 256, QUERIES - 1]) {
    const { question, query, history_queries: history } = asked[place]!;
    const input = query === undefined ? question : { question, query, history };
    const { outcomes } = await retriever.retrieve({ queries: [input], k: 7 });
    const [outcome] = outcomes;
    assert.ok(outcome?.ok === true);
    const expected = outcome.hits.map(({ row, score, document }) => {
      const [, id] = /^\{"id":(?:"([^"]*)"|(\d+)),/.exec(document)?.filter((part) => part !== undefined) ?? [];
      return { row, id: id ?? `row:${row}`, score };
    });
    assert.deepEqual(lines[place]!.hits, expected);
  }
  assert.ok(
    lines.some(({ hits }) => hits.some(({ id }) => /^90071992547[0-9]{5}$/.test(id))),
    'ids beyond 2^53',
  );

  const flat = lines.flatMap(({ id, round_index, hits }) =>
    hits.map((hit, i) => ({ query_id: id, round_index, rank: i + 1, row: hit.row, id: hit.id, score: hit.score })),
  );
  await search(join(cwd, 'hits.parquet'));
  assert.deepEqual(await parquetOf(join(cwd, 'hits.parquet')), flat);

  const run = (await search(join(cwd, 'hits.run'), '--tag', 'mine')).toString();
  assert.equal(
    run,
    flat.map((hit) => `${hit.query_id}#${hit.round_index} Q0 ${hit.id} ${hit.rank} ${hit.score} mine\n`).join(''),
  );

  const rows = await search(join(cwd, 'rows.npy'), '--scores-out', join(cwd, 'scores.npy'));
  const scores = readFileSync(join(cwd, 'scores.npy'));
  const [rowsAt, scoresAt] = [rows, scores].map((file) => 10 + file.readUInt16LE(8)) as [number, number];
  assert.match(rows.toString('latin1', 0, rowsAt), new RegExp(`'shape': \\(${QUERIES}, 7\\)`));
  assert.deepEqual(
    flat.map((_, i) => [Number(rows.readBigInt64LE(rowsAt + 8 * i)), scores.readFloatLE(scoresAt + 4 * i)]),
    flat.map(({ row, score }) => [row, score]),
  );
  const written = ['hits.jsonl', 'hits.parquet', 'hits.run', 'rows.npy'];
  const reports = written.map((name) => `${name}.report.json`);
  assert.deepEqual(readdirSync(cwd).sort(), [...written, ...reports, 'scores.npy'].sort());
});

test('the outputs of the parts of --shard are together the output of all queries', async (t) => {
  const cwd = await tempFolder(t);
  for (const n of [1, 3, 7]) {
    for (const name of ['hits.jsonl', 'hits.run']) {
      const parts = [];
      for (let i = 0; i < n; i++) parts.push(await search(join(cwd, `${i}.${name}`), '--shard', `${i}/${n}`));
      assert.ok(Buffer.concat(parts).equals(await search(join(cwd, name))), `${n} parts of ${name}`);
    }
  }
  const rows = [];
  for (let i = 0; i < 3; i++) {
    await search(join(cwd, `${i}.parquet`), '--shard', `${i}/3`);
    rows.push(...(await parquetOf(join(cwd, `${i}.parquet`))));
  }
  await search(join(cwd, 'whole.parquet'));
  assert.deepEqual(rows, await parquetOf(join(cwd, 'whole.parquet')));
  const { code, stderr } = await runTrawl([
    'search',
    index,
    '--queries',
    queries,
    '--out',
    join(cwd, 'x'),
    '--shard',
    '3/3',
  ]);
  assert.equal(code, 2);
  assert.match(stderr, /--shard is 3\/3/);
});

for (const args of [
  ['--mode', 'bm25'],
  ['--mode', 'bm25', '--bm25-order', 'pyserini'],
  ['--mode', 'hybrid', '--hybrid-depth', '50'],
  ['--filter', 'part < 2'],
  ['--query-form', 'question'],
  ['--query-template', 'query'],
]) {
  test(`${args.join(' ')} finds what single queries with it find`, async (t) => {
    const cwd = await tempFolder(t);
    const lines = linesOf(await search(join(cwd, 'hits.jsonl'), ...args));
    const asked = readFileSync(queries, 'utf8').split('\n');
    for (const place of [0, 1, 300]) {
      const { question, query } = JSON.parse(asked[place]!) as { question: string; query?: string };
      const isPair = query !== undefined && !args.includes('--query-form');
      const single = isPair ? [query, '--question', question] : [question];
      const others = args[0] === '--query-form' ? [] : args;
      const { hits } = jsonOf<{ hits: { row: number; score: number }[] }>(
        await runTrawl(['search', index, ...single, '--k', '7', '--json', ...others]),
      );
      assert.deepEqual(
        lines[place]!.hits.map(({ row, score }) => ({ row, score })),
        hits.map(({ row, score }) => ({ row, score })),
      );
    }
  });
}

test('--view limits a bulk search, and fewer hits than k leave -1 in a .npy file', async (t) => {
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'rows.txt'), '3\n5\n8\n');
  const { generation } = openIndexDirectory(index).manifest;
  writeFileSync(join(cwd, 'views.json'), JSON.stringify({ some: { rows: 'rows.txt', generation } }));
  const bytes = await search(join(cwd, 'rows.npy'), '--views', join(cwd, 'views.json'), '--view', 'some');
  const at = 10 + bytes.readUInt16LE(8);
  const first = Array.from({ length: 7 }, (_, i) => Number(bytes.readBigInt64LE(at + 8 * i)));
  assert.deepEqual(first.slice(0, 3).sort(), [3, 5, 8]);
  assert.deepEqual(first.slice(3), [-1, -1, -1, -1]);
});

test('--query-vectors finds what the texts find, without the encoder, and needs no texts', async (t) => {
  const cwd = await tempFolder(t);
  const { manifest } = openIndexDirectory(index);
  const encoder = await openIndexEncoder([index], manifest, {});
  t.after(() => encoder.close());
  const asked = Array.from({ length: 300 }, (_, i) => ({ id: `q${i}`, question: textOf(seededRandom(i), 5) }));
  writeFileSync(join(cwd, 'q.jsonl'), asked.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { vectors } = await encoder.encode(
    asked.map(({ question }) => question),
    { inputType: 'query' },
  );
  const matrix = { rows: asked.length, columns: encoder.dimension, values: vectors };
  writeFileSync(join(cwd, 'q.npy'), encodeNpy(matrix));
  const fvecs = asked.map((_, i) => {
    const head = Buffer.alloc(4);
    head.writeInt32LE(encoder.dimension);
    return Buffer.concat([head, new Uint8Array(vectors.buffer, i * encoder.dimension * 4, encoder.dimension * 4)]);
  });
  writeFileSync(join(cwd, 'q.fvecs'), Buffer.concat(fvecs));
  const run = async (...args: string[]): Promise<Line[]> => {
    const out = join(cwd, 'out.jsonl');
    // No such model: a search with an encoder would fail.
    const { code, stderr } = await runTrawl(['search', index, '--k', '4', '--out', out, ...args]);
    assert.equal(code, 0, stderr);
    return linesOf(readFileSync(out));
  };
  const texts = ['--queries', join(cwd, 'q.jsonl')];
  const withoutModel = ['--model', join(cwd, 'no-such-model')];
  const byText = await run(...texts);
  for (const name of ['q.npy', 'q.fvecs']) {
    const byVector = await run('--query-vectors', join(cwd, name), ...withoutModel);
    assert.deepEqual(
      byVector,
      byText.map(({ hits }, i) => ({ id: String(i), hits })),
    );
    assert.deepEqual(await run('--query-vectors', join(cwd, name), ...texts, ...withoutModel), byText);
  }
  const hybrid = ['--mode', 'hybrid'];
  assert.deepEqual(
    await run(...texts, '--query-vectors', join(cwd, 'q.npy'), ...hybrid, ...withoutModel),
    await run(...texts, ...hybrid),
  );

  const fails = async (pattern: RegExp, ...args: string[]): Promise<void> => {
    const { code, stderr } = await runTrawl(['search', index, '--out', join(cwd, 'bad.jsonl'), ...args]);
    assert.notEqual(code, 0);
    assert.match(stderr, pattern);
    assert.equal(existsSync(join(cwd, 'bad.jsonl')), false);
  };
  await fails(/has 300 vectors, but --queries has 700/, '--queries', queries, '--query-vectors', join(cwd, 'q.npy'));
  await fails(/reads the words of the queries/, '--query-vectors', join(cwd, 'q.npy'), '--mode', 'hybrid');
  await fails(/no effect with --mode bm25/, '--query-vectors', join(cwd, 'q.npy'), '--mode', 'bm25');
  await fails(/cannot be combined with --index/, '--query-vectors', join(cwd, 'q.npy'), '--index', `other=${index}`);
  writeFileSync(join(cwd, 'few.npy'), encodeNpy({ rows: 2, columns: 3, values: new Float32Array(6) }));
  await fails(/vectors of 3 dimensions, the index of 256.*DIMENSION_MISMATCH/, '--query-vectors', join(cwd, 'few.npy'));
  matrix.values[5 * encoder.dimension + 1] = Number.NaN;
  writeFileSync(join(cwd, 'nan.npy'), encodeNpy(matrix));
  await fails(/nan\.npy: query 5 has NaN in column 1/, '--query-vectors', join(cwd, 'nan.npy'));
  const broken = Buffer.concat(fvecs);
  broken.writeInt32LE(5, 3 * (4 + 4 * encoder.dimension));
  writeFileSync(join(cwd, 'broken.fvecs'), broken);
  await fails(/vector 3 has 5 dimensions/, '--query-vectors', join(cwd, 'broken.fvecs'));
  writeFileSync(join(cwd, 'short.fvecs'), broken.subarray(0, -1));
  await fails(/not a multiple of/, '--query-vectors', join(cwd, 'short.fvecs'));
  await fails(/cannot be read|Cannot read/, '--query-vectors', join(cwd, 'none.fvecs'));
});
