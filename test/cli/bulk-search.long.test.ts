import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeNpy } from '../../bench/vectors/npy.ts';
import { readParquetRows } from '../../corpus/read-parquet.ts';
import { openIndexDirectory } from '../../src/retrieval/opening/index-directory.ts';
import { openIndexEncoder } from '../../src/retrieval/opening/open-index-encoder.ts';
import { openRetriever } from '../../src/retrieval/opening/open-retriever.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { importedCrossEncoder } from '../rerank/tiny-cross-encoder.ts';
import { endOf, fileFolder, jsonOf, runTrawl, spawnTrawl } from './run-trawl.ts';

const folder = await fileFolder();
const index = join(folder, 'ix');
const QUERIES = 700;
const queries = join(folder, 'queries.jsonl');

interface Line {
  readonly id: string;
  readonly round_index?: number;
  readonly hits: readonly {
    readonly index?: string;
    readonly row: number;
    readonly id: string;
    readonly score: number;
    readonly firstStage?: { readonly rank: number; readonly score: number };
  }[];
}

const words = Array.from({ length: 60 }, (_, i) => `word${i.toString(36)}`);

function textOf(random: () => number, length: number): string {
  return Array.from({ length }, () => words[Math.floor(random() * words.length)]).join(' ');
}

/** Ids of all kinds: integers beyond 2^53, strings, none. */
function corpus(count: number, random: () => number): string {
  return Array.from({ length: count }, (_, i) => {
    const id = i % 3 === 0 ? `"id":${9_007_199_254_740_993n + BigInt(i)},` : i % 3 === 1 ? `"id":"p${i}",` : '';
    return `{${id}"contents":"\\"T${i}\\"\\n${textOf(random, 12)}","part":${i % 10}}\n`;
  }).join('');
}

before(async () => {
  const random = seededRandom(3);
  const file = join(folder, 'corpus.jsonl');
  writeFileSync(file, corpus(400, random));
  const args = [
    'index',
    file,
    '--out',
    index,
    '--model',
    'token-average-256',
    '--bm25',
    '--column',
    'part:number',
    '--quiet',
  ];
  assert.equal((await runTrawl(args)).code, 0);
  const lines = Array.from({ length: QUERIES }, (_, i) =>
    JSON.stringify({
      // Each question has two rounds, and every tenth pair has the id of the first.
      id: i % 20 < 2 ? 'again' : `train_${i >> 1}`,
      question: textOf(random, 6),
      ...(i % 2 === 1 ? { query: textOf(random, 3), history_queries: [textOf(random, 2)] } : {}),
      round_index: 1 + (i % 2),
    }),
  );
  writeFileSync(queries, `${lines.join('\n')}\n`);
});

async function search(out: string, ...args: string[]): Promise<Buffer> {
  const command = ['search', index, '--queries', queries, '--k', '7', '--out', out, ...args];
  const { code, stderr } = await runTrawl(command);
  assert.equal(code, 0, stderr);
  return readFileSync(out);
}

function linesOf(bytes: Buffer): Line[] {
  return bytes
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

async function parquetOf(path: string): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const some of readParquetRows(path)) {
    rows.push(...some.map(({ row }) => JSON.parse(row as string) as Record<string, unknown>));
  }
  return rows;
}

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
    const input = query === undefined ? question : { question, query, ...(history === undefined ? {} : { history }) };
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

test('a group of indexes names the index of each hit, and is refused where a format cannot', async (t) => {
  const cwd = await tempFolder(t);
  const other = join(cwd, 'other');
  writeFileSync(join(cwd, 'more.jsonl'), corpus(50, seededRandom(8)));
  assert.equal(
    (await runTrawl(['index', join(cwd, 'more.jsonl'), '--out', other, '--model', 'token-average-256', '--quiet']))
      .code,
    0,
  );
  const group = ['--index', `other=${other}`];
  const lines = linesOf(await search(join(cwd, 'hits.jsonl'), ...group));
  const found = lines.flatMap(({ hits }) => hits);
  assert.deepEqual([...new Set(found.map((hit) => hit.index))].sort(), ['ix', 'other']);
  const second = readFileSync(join(cwd, 'more.jsonl'), 'utf8').split('\n');
  for (const hit of found.filter((each) => each.index === 'other').slice(0, 50)) {
    assert.ok(
      hit.id === `row:${hit.row}` || second[hit.row]!.includes(hit.id),
      `row ${hit.row} has not the id ${hit.id}`,
    );
  }
  await search(join(cwd, 'hits.parquet'), ...group);
  const hits = await parquetOf(join(cwd, 'hits.parquet'));
  assert.deepEqual(
    hits.map((hit) => [hit['index'], hit['row'], hit['id']]),
    found.map((hit) => [hit.index, hit.row, hit.id]),
  );
  for (const name of ['rows.npy', 'hits.run']) {
    const refused = await runTrawl(['search', index, '--queries', queries, '--out', join(cwd, name), ...group]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /from which of several indexes a hit is/);
  }
});

test('SIGTERM ends with the code to resume, and the same command completes the same output', async (t) => {
  const cwd = await tempFolder(t);
  const library = faultLibrary(cwd);
  if ('missing' in library) return t.skip(library.missing);
  // More batches than are in flight at a time.
  const many = join(cwd, 'many.jsonl');
  writeFileSync(many, readFileSync(queries, 'utf8').repeat(10));
  const argsFor = (file: string): string[] => [
    'search',
    index,
    '--queries',
    many,
    '--k',
    '7',
    '--out',
    join(cwd, file),
  ];
  assert.equal((await runTrawl(argsFor('expected.jsonl'))).code, 0);
  const [out, args] = [join(cwd, 'hits.jsonl'), argsFor('hits.jsonl')];
  // The second write of results.
  const env = library.environment({ under: `${out}.partial`, calls: 'write', at: 2, do: 'term' });
  const stopped = await endOf(spawnTrawl(args, { env }));
  assert.equal(stopped.code, 75, stopped.stderr);
  assert.match(stopped.stderr, /Stopped after \d+ of 7000 queries\. The same command resumes there/);
  assert.equal(existsSync(out), false);
  const changed = await runTrawl([...args, '--filter', 'part < 9', '--k', '8']);
  assert.equal(changed.code, 1);
  assert.match(
    changed.stderr,
    /--k was 7 and is 8; --filter was not set and is "part < 9".*--restart.*\[OUTPUT_DIFFERS\]/s,
  );
  const resumed = await runTrawl([...args, '--json']);
  const report = jsonOf<{ queries: number; resumed: number; failed: number }>(resumed);
  assert.ok(report.resumed > 0 && report.resumed < 10 * QUERIES, `resumed after ${report.resumed}`);
  assert.deepEqual({ ...report, resumed: 0 }, { out, queries: 10 * QUERIES, k: 7, resumed: 0, failed: 0 });
  assert.ok(readFileSync(out).equals(readFileSync(join(cwd, 'expected.jsonl'))));
});

test('a complete output is not searched again, unless its queries, options or bytes changed or --restart says so', async (t) => {
  const cwd = await tempFolder(t);
  const own = join(cwd, 'q.jsonl');
  writeFileSync(own, '{"id":"a","question":"word1"}\n{"id":"b","question":"word2"}\n');
  const out = join(cwd, 'rows.npy');
  const scores = join(cwd, 'scores.npy');
  const run = async (...args: string[]) => {
    const files = ['--queries', own, '--out', out, '--scores-out', scores];
    const ended = await runTrawl(['search', index, '--k', '3', ...files, ...args]);
    assert.equal(ended.code, 0, ended.stderr);
    // A new file has another inode, because it is renamed into its place.
    return { ...ended, isComplete: / is complete, /.test(ended.stderr), inode: statSync(out).ino };
  };
  const first = await run();
  assert.equal(first.isComplete, false);
  const again = await run();
  assert.match(
    again.stderr,
    /rows\.npy is complete, with the same queries, index and options\. Search again with --restart\./,
  );
  assert.equal(again.inode, first.inode);
  assert.deepEqual(readdirSync(cwd).sort(), ['q.jsonl', 'rows.npy', 'rows.npy.report.json', 'scores.npy']);
  const asJson = await run('--json');
  assert.deepEqual(jsonOf(asJson), { out, queries: 2, k: 3, resumed: 2, failed: 0 });
  assert.equal((await run('--restart')).isComplete, false);
  assert.equal((await run()).isComplete, true);
  assert.equal((await run('--k', '2')).isComplete, false);
  assert.equal((await run()).isComplete, false, 'the output is that of --k 2');
  appendFileSync(scores, 'x');
  assert.equal((await run()).isComplete, false);
  appendFileSync(own, '{"id":"c","question":"word3"}\n');
  assert.equal((await run()).isComplete, false);
});

test('a query file that changes during the search is an error, and a pipe is refused', async (t) => {
  const cwd = await tempFolder(t);
  const file = join(cwd, 'q.jsonl');
  const line = '{"id":"a","question":"word1"}\n';
  writeFileSync(file, line.repeat(200_000));
  const child = spawnTrawl(['search', index, '--queries', file, '--out', join(cwd, 'hits.npy'), '--k', '1']);
  const ended = endOf(child);
  while (!existsSync(join(cwd, 'hits.npy.partial')) && child.exitCode === null) await sleep(5);
  writeFileSync(file, line.repeat(199_999));
  const { code, stderr } = await ended;
  assert.equal(code, 1, stderr);
  assert.match(stderr, /changed while it was searched.*\[CORPUS_CHANGED\]/);
  const pipe = await runTrawl(['search', index, '--queries', '/dev/null', '--out', join(cwd, 'hits.jsonl')]);
  assert.equal(pipe.code, 2);
  assert.match(pipe.stderr, /\/dev\/null is not a regular file/);
});

test('options of a bulk search without one, and contradictions, are refused', async () => {
  const fails = async (pattern: RegExp, ...args: string[]): Promise<void> => {
    const { code, stderr } = await runTrawl(['search', index, ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, pattern);
  };
  await fails(/--shard has no effect without --queries or --query-vectors/, 'a query', '--shard', '0/2');
  await fails(/--restart has no effect/, 'a query', '--restart');
  await fails(/Expected either a query or --queries FILE/, 'a query', '--queries', queries);
  await fails(/Expected either a query or --queries FILE/);
  await fails(/--query-vectors needs --out/, '--query-vectors', 'q.npy');
  await fails(
    /--queries-format has no effect without --queries/,
    '--query-vectors',
    'q.npy',
    '--out',
    'x',
    '--queries-format',
    'tsv',
  );
  await fails(/is the same file as --out x\.npy/, '--queries', queries, '--out', 'x.npy', '--scores-out', './x.npy');
  await fails(/--scores-out is for row numbers/, '--queries', queries, '--out', 'x.jsonl', '--scores-out', 'x.npy');
  await fails(/The tag "a b"/, '--queries', queries, '--out', 'x.run', '--tag', 'a b');
});

test('a file without queries is refused, whatever its format', async (t) => {
  const cwd = await tempFolder(t);
  const out = join(cwd, 'out.jsonl');
  for (const [name, text, reason] of [
    ['none.tsv', '', /none\.tsv has no queries in the format tsv/],
    ['none.jsonl', '\n\n', /none\.jsonl has no queries in the format jsonl/],
    ['none.xml', '<topics>\n</topics>\n', /none\.xml has no topic: no <top> or <topic> element/],
  ] as const) {
    writeFileSync(join(cwd, name), text);
    const { code, stderr } = await runTrawl(['search', index, '--queries', join(cwd, name), '--out', out]);
    assert.equal(code, 1);
    assert.match(stderr, reason);
    assert.match(stderr, /\[CORPUS_EMPTY\]/);
    assert.equal(existsSync(out), false);
  }
});

test('a part of --shard without queries makes an output without hits', async (t) => {
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'one.tsv'), '1\tword1\n');
  const ofPart = ['--queries', join(cwd, 'one.tsv'), '--shard', '0/2'];
  for (const name of ['out.jsonl', 'out.parquet', 'out.npy', 'out.run']) {
    const { code, stderr } = await runTrawl(['search', index, ...ofPart, '--out', join(cwd, name)]);
    assert.equal(code, 0, stderr);
  }
  assert.equal(readFileSync(join(cwd, 'out.jsonl'), 'utf8'), '');
  assert.deepEqual(await parquetOf(join(cwd, 'out.parquet')), []);
  assert.match(readFileSync(join(cwd, 'out.npy'), 'latin1'), /'shape': \(0, 5\)/);
});

test('an output that is an input, another output or a file of the index is refused, also through links', async (t) => {
  const cwd = await tempFolder(t);
  const own = join(cwd, 'q.jsonl');
  const text = '{"id":"a","question":"word1"}\n';
  writeFileSync(own, text);
  symlinkSync(own, join(cwd, 'symbolic'));
  linkSync(own, join(cwd, 'hard'));
  symlinkSync(cwd, join(cwd, 'folder'));
  const vectors = join(cwd, 'v.npy');
  writeFileSync(vectors, encodeNpy({ rows: 1, columns: 256, values: new Float32Array(256).fill(1) }));
  const before = readFileSync(vectors);
  const refused = async (pattern: RegExp, ...args: string[]): Promise<void> => {
    const { code, stderr } = await runTrawl(['search', index, ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, pattern);
    assert.equal(readFileSync(own, 'utf8'), text);
    assert.ok(readFileSync(vectors).equals(before));
  };
  for (const out of ['q.jsonl', 'symbolic', 'hard', 'folder/q.jsonl']) {
    await refused(/--out .* is --queries .*q\.jsonl, which is read/, '--queries', own, '--out', join(cwd, out));
  }
  const rows = join(cwd, 'rows.npy');
  await refused(
    /--scores-out .*v\.npy is --query-vectors .*v\.npy, which is read/,
    ...['--query-vectors', vectors, '--out', rows, '--scores-out', vectors],
  );
  await refused(
    /--scores-out .* is the same file as --out .*rows\.npy/,
    ...['--queries', own, '--out', rows, '--scores-out', join(cwd, 'folder', 'rows.npy')],
  );
  writeFileSync(join(cwd, 'hits.partial'), text);
  await refused(
    /--out .*hits is written with .*hits\.partial beside it, and that is --queries .*hits\.partial, which is read/,
    ...['--queries', join(cwd, 'hits.partial'), '--out', join(cwd, 'hits')],
  );
  assert.equal(readFileSync(join(cwd, 'hits.partial'), 'utf8'), text);
  const manifest = readFileSync(join(index, 'manifest.json'));
  await refused(/is a file of the index/, '--queries', own, '--out', join(index, 'manifest.json'));
  assert.ok(readFileSync(join(index, 'manifest.json')).equals(manifest));
});

test('--rerank orders the hits of every query as single queries with it do', async (t) => {
  const cwd = await tempFolder(t);
  const reranking = ['--rerank', await importedCrossEncoder(t), '--rerank-depth', '10', '--rerank-threads', '1'];
  const some = join(cwd, 'some.jsonl');
  writeFileSync(some, `${readFileSync(queries, 'utf8').split('\n').slice(0, 12).join('\n')}\n`);
  const lines = linesOf(await search(join(cwd, 'hits.jsonl'), '--queries', some, ...reranking));
  assert.equal(lines.length, 12);
  const places = new Set<number>();
  for (const [i, line] of readFileSync(some, 'utf8').trim().split('\n').entries()) {
    const {
      question,
      query,
      history_queries: history = [],
    } = JSON.parse(line) as {
      question: string;
      query?: string;
      history_queries?: string[];
    };
    const single = query === undefined ? [question] : [query, '--question', question];
    const args = [...single, ...history.flatMap((each) => ['--history', each]), '--k', '7', '--json', ...reranking];
    const { hits } = jsonOf<{ hits: Line['hits'] }>(await runTrawl(['search', index, ...args]));
    const shown = (hit: Line['hits'][number]): unknown => [hit.row, hit.score, hit.firstStage];
    assert.deepEqual(lines[i]!.hits.map(shown), hits.map(shown));
    for (const { firstStage } of lines[i]!.hits) places.add(firstStage!.rank);
  }
  assert.ok(Math.max(...places) > 7, 'hits that the search has beyond k');
});

test('a rerank server that fails ends the search, and the same command completes the same output', async (t) => {
  const cwd = await tempFolder(t);
  let requests = 0;
  let failsFrom = Number.POSITIVE_INFINITY;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += String(part);
    if (++requests >= failsFrom) {
      response.writeHead(500).end();
      return;
    }
    const { texts } = JSON.parse(body) as { texts: string[] };
    response.end(JSON.stringify(texts.map((text, i) => ({ index: i, score: text.length / 1000 }))));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reranking = ['--rerank', url, '--rerank-api', 'tei', '--rerank-depth', '30'];
  const expected = await search(join(cwd, 'expected.jsonl'), ...reranking);
  // One request a query. At most four batches of 136 queries are at work, so the first one is complete then.
  failsFrom = requests + 600;
  const out = join(cwd, 'hits.jsonl');
  const args = ['search', index, '--queries', queries, '--k', '7', '--out', out, ...reranking];
  const failed = await runTrawl(args);
  assert.equal(failed.code, 1, failed.stderr);
  assert.match(
    failed.stderr,
    /Query \d+ of 700 \(id "[^"]+"\): The rerank server failed: status 500\. The same command resumes after \d+ of 700 queries\. \[RERANK_FAILED\]/,
  );
  assert.deepEqual(readdirSync(cwd).sort(), [
    'expected.jsonl',
    'expected.jsonl.report.json',
    'hits.jsonl.lock',
    'hits.jsonl.partial',
    'hits.jsonl.progress',
  ]);
  failsFrom = Number.POSITIVE_INFINITY;
  const { resumed } = jsonOf<{ resumed: number }>(await runTrawl([...args, '--json']));
  assert.ok(resumed > 0 && resumed < QUERIES, `resumed after ${resumed}`);
  assert.ok(readFileSync(out).equals(expected));
});
