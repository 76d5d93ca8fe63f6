import assert from 'node:assert/strict';
import { existsSync, linkSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeNpy } from '../../../bench/vectors/npy.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { endOf, runTrawl, spawnTrawl } from '../run-trawl.ts';
import { corpus, index, linesOf, parquetOf, queries, search } from './searched-index.ts';

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
