import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT } from '../../../cli/program/command.ts';
import { withChecksum } from '../../../src/index/manifest/write-manifest.ts';
import { openBundle } from '../../../training/replay/open-bundle.ts';
import { writeBundle } from '../../../training/replay/write-bundle.ts';
import { endOf, fileFolder, jsonOf, runTrawl, serveWith, spawnTrawl } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { type Asked, ask, recordedServer, serveRetriever } from './recorded-server.ts';

const server = await recordedServer();
const bundle = join(await fileFolder(), 'sample.bundle');
/** The records that the bundle is made of; later tests add others to those of the server. */
const bundled = join(bundle, '..', 'calls.jsonl');
const QUERY = 'who designed the Brooklyn Bridge';
const QUESTION = 'Where was the designer of the Brooklyn Bridge born?';

/** What the recording server is asked, as the clients of each kind ask it. */
const CALLS: readonly { readonly name: string; readonly path: string; readonly body: unknown }[] = [
  {
    name: 'Search-R1 with scores',
    path: '/retrieve',
    body: { queries: [QUERY, 'capital of Finland'], topk: 3, return_scores: true },
  },
  { name: 'Search-R1 without scores', path: '/retrieve', body: { queries: [QUERY], topk: 3 } },
  { name: 'Search-R1 with a larger topk', path: '/retrieve', body: { queries: ['capital of Finland'], topk: 7 } },
  {
    name: 'Search-R1 with a question',
    path: '/retrieve',
    body: { queries: ['birthplace of the designer'], questions: [QUESTION], topk: 3 },
  },
  {
    name: 'RAG-R1',
    path: '/retrieve',
    body: { queries: ['Eiffel Tower', 'Danube', 'Sydney Opera House'], topk: 3, return_scores: true },
  },
  { name: 'RAG-R1 without queries', path: '/retrieve', body: { queries: [], topk: 3, return_scores: true } },
  { name: 'SkyRL', path: '/retrieve', body: { query: 'Danube', topk: 3, return_scores: true } },
  { name: 'R1-Searcher', path: '/queries', body: { queries: ['Danube'], k: 3 } },
  {
    name: '/v1/search, dense',
    path: '/v1/search',
    body: { queries: [QUERY, { question: QUESTION, query: 'birthplace' }], k: 4 },
  },
  {
    name: '/v1/search with documents',
    path: '/v1/search',
    body: { queries: ['Eiffel Tower height'], k: 4, documents: true, maxChars: 50 },
  },
  {
    name: '/v1/search, bm25',
    path: '/v1/search',
    body: { queries: [QUERY, { question: QUESTION, query: 'birthplace' }], k: 4, mode: 'bm25' },
  },
  {
    name: '/v1/search, other k1',
    path: '/v1/search',
    body: { queries: [QUERY], k: 4, mode: 'bm25', bm25: { k1: 2, b: 0.1 } },
  },
  {
    name: '/v1/search, hybrid',
    path: '/v1/search',
    body: { queries: [QUERY], k: 4, mode: 'hybrid', hybrid: { fusion: 'rrf' } },
  },
  { name: '/v1/search, reranked', path: '/v1/search', body: { queries: [QUERY], k: 2, rerank: { depth: 20 } } },
  {
    name: '/v1/search with the template query',
    path: '/v1/search',
    body: { queries: [{ question: QUESTION, query: 'birthplace' }], k: 2, template: 'query' },
  },
];
const replies: Asked[] = [];

before(async () => {
  for (const { path, body } of CALLS) replies.push(await server.ask(path, body));
  for (const reply of replies) assert.equal(reply.status, 200, reply.text);
  await server.flush();
  cpSync(server.records, bundled);
  await writeBundle({ records: [bundled], index: server.index, out: bundle });
});

test('only its owner can open a bundle and read its answers', () => {
  const modes = [bundle, join(bundle, 'answers.sqlite')].map((path) => statSync(path).mode & 0o777);
  assert.deepEqual(modes, [0o700, 0o600]);
});

/** Only times differ. */
function withoutTimes(text: string): string {
  return text.replace(/"timings":\{[^}]*\}/, '"timings":{}');
}

for (const [i, { name, path, body }] of CALLS.entries()) {
  test(`a replayed reply is the recorded one, byte for byte: ${name}`, async (t) => {
    const url = await serveRetriever(t, await openBundle(bundle));
    const { status, text } = await ask(url, path, body);
    assert.equal(status, 200, text);
    assert.equal(withoutTimes(text), withoutTimes(replies[i]!.text));
  });
}

test('a smaller k gets the first hits of the recorded answer, a larger one an error with both numbers', async (t) => {
  const url = await serveRetriever(t, await openBundle(bundle));
  const smaller = await ask(url, '/retrieve', { queries: [QUERY], topk: 1, return_scores: true });
  const { result } = JSON.parse(replies[0]!.text) as { result: unknown[][] };
  assert.deepEqual(JSON.parse(smaller.text), { result: [result[0]!.slice(0, 1)] });
  // The query was recorded with 4 hits by /v1/search, which are also those of /retrieve.
  const larger = await ask(url, '/retrieve', { queries: [QUERY], topk: 5 });
  assert.equal(larger.status, 404);
  assert.match(larger.text, /NOT_RECORDED/);
  assert.match(larger.text, /recorded with k = 4, and 5 hits/);
});

test('a query that was not recorded is an error, or an empty list if the server is started so', async (t) => {
  const strict = await serveRetriever(t, await openBundle(bundle));
  const unknown = await ask(strict, '/retrieve', { queries: ['never asked'], topk: 3 });
  assert.equal(unknown.status, 404);
  assert.match(unknown.text, /NOT_RECORDED/);
  const mixed = await ask(strict, '/v1/search', { queries: [QUERY, 'never asked'], k: 3 });
  const { results } = JSON.parse(mixed.text) as { results: { ok: boolean; error?: { code: string } }[] };
  assert.deepEqual(
    results.map(({ ok, error }) => [ok, error?.code]),
    [
      [true, undefined],
      [false, 'NOT_RECORDED'],
    ],
  );
  const lenient = await serveRetriever(t, await openBundle(bundle, { unrecorded: 'empty' }));
  const empty = await ask(lenient, '/retrieve', { queries: ['never asked', QUERY], topk: 3 });
  const lists = (JSON.parse(empty.text) as { result: unknown[][] }).result;
  assert.deepEqual(
    lists.map(({ length }) => length),
    [0, 3],
  );
  const native = await ask(lenient, '/v1/search', { queries: ['never asked'], k: 3 });
  const [first] = (JSON.parse(native.text) as { results: { certificate: object }[] }).results;
  assert.deepEqual(first!.certificate, { exact: false, rescored: null }, 'nothing is proved');
});

test('other settings than the recorded ones are not recorded, and the message names both', async (t) => {
  const url = await serveRetriever(t, await openBundle(bundle));
  const body = { queries: ['capital of Finland'], k: 3, mode: 'bm25' };
  const { results } = JSON.parse((await ask(url, '/v1/search', body)).text) as {
    results: { error: { message: string } }[];
  };
  assert.match(results[0]!.error.message, /recorded with the settings \{"mode":"dense"\}, not with \{"mode":"bm25"\}/);
  for (const change of [{ bm25: { k1: 3 } }, { filter: "id = 'x'" }, { rerank: { depth: 21 } }]) {
    const { text } = await ask(url, '/v1/search', { queries: [QUERY], k: 2, mode: 'bm25', ...change });
    assert.match(text, /NOT_RECORDED/, JSON.stringify(change));
  }
});

test('the index, generation and model of the records are those of the replayed index', async (t) => {
  const replayed = await openBundle(bundle);
  const url = await serveRetriever(t, replayed);
  const { indexes } = (await (await fetch(`${url}/v1/indexes`)).json()) as {
    indexes: { name: string; model: { name: string } }[];
  };
  const manifest = JSON.parse(readFileSync(join(server.index, 'manifest.json'), 'utf8')) as {
    generation: string;
    rows: number;
  };
  const { index, generation, rows } = replayed.info;
  assert.deepEqual([index, generation, rows], ['sample', manifest.generation, manifest.rows]);
  assert.deepEqual(
    indexes.map(({ name, model }) => [name, model.name]),
    [['sample', 'token-average-256']],
  );
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, new RegExp(`^trawl_index_rows\\{index="sample"\\} ${rows}$`, 'm'));
});

test('passages of recorded answers are found by id and row; others are not recorded', async (t) => {
  const url = await serveRetriever(t, await openBundle(bundle));
  const { results } = JSON.parse(replies[9]!.text) as {
    results: { hits: { row: number; id: string; document: object }[] }[];
  };
  const [hit] = results[0]!.hits;
  const { passages } = JSON.parse((await ask(url, '/v1/passages', { ids: [hit!.id], rows: [hit!.row] })).text) as {
    passages: { row: number; document: object }[];
  };
  assert.deepEqual(
    passages.map(({ row }) => row),
    [hit!.row, hit!.row],
  );
  for (const body of [{ ids: ['no such id'] }, { rows: [1_000_000] }]) {
    const { status, text } = await ask(url, '/v1/passages', body);
    assert.equal(status, 404, text);
    assert.match(text, /NOT_RECORDED/);
  }
});

test('what a bundle does not have is refused as not supported', async (t) => {
  const url = await serveRetriever(t, await openBundle(bundle));
  const scores = await ask(url, '/v1/score', { queries: [{ query: QUERY, rows: [0] }] });
  assert.equal(scores.status, 501, scores.text);
  const vectors = await ask(url, '/v1/embeddings', { model: 'token-average-256', input: [QUERY] });
  assert.equal(vectors.status, 501, vectors.text);
});

test('equal records give an equal bundle, byte for byte, in any order', async (t) => {
  const folder = await tempFolder(t);
  const reversed = join(folder, 'reversed.jsonl');
  const lines = readFileSync(server.records, 'utf8').trimEnd().split('\n');
  writeFileSync(reversed, `${[...lines].reverse().join('\n')}\n`);
  const out = join(folder, 'again');
  await writeBundle({ records: [reversed, server.records], index: server.index, out });
  const names = readdirSync(bundle).sort();
  assert.deepEqual(names, ['answers.sqlite', 'bundle.json', 'passages.sqlite', 'rows.f64']);
  assert.deepEqual(readdirSync(out).sort(), names);
  for (const name of names) assert.deepEqual(readFileSync(join(out, name)), readFileSync(join(bundle, name)), name);
  assert.deepEqual(readdirSync(folder).sort(), ['again', 'reversed.jsonl'], 'no lock and no partial folder is left');
});

test('records that cannot be replayed are left out and counted by reason', async (t) => {
  const folder = await tempFolder(t);
  const [line] = readFileSync(server.records, 'utf8').split('\n');
  const record = JSON.parse(line!) as Record<string, unknown>;
  const { rows: _rows, scores: _scores, ids: _ids, answer: _answer, ...head } = record;
  const lines = [
    record,
    { ...head, error: 'INTERNAL' },
    { ...record, generation: 'f'.repeat(32) },
    { ...record, view: 'before-2018' },
    { ...record, dialect: 'elasticsearch' },
    { ...record, selection: { excluded: 1 } },
    { ...record, perturbed: { droppedGold: 1 } },
    { ...record, indexes: (record.rows as number[]).map(() => 'a') },
    { ...record, mode: 'sparse' },
    { ...record, answer: { ...(record.answer as object), rerank: null } },
    { ...record, rows: [...(record.rows as number[])].reverse() },
    { ...record, query: 'of an older server', answer: undefined },
  ];
  const records = join(folder, 'calls.jsonl');
  writeFileSync(records, lines.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const summary = await writeBundle({ records: [records], index: server.index, out: join(folder, 'out') });
  assert.deepEqual(summary.leftOut, {
    error: 1,
    group: 1,
    view: 1,
    queryTree: 1,
    selection: 1,
    perturbed: 1,
    rerankFailed: 1,
    unknown: 1,
    otherGeneration: 1,
    contradicting: 1,
  });
  assert.deepEqual([summary.records, summary.answers, summary.withoutFacts], [lines.length, 2, 1]);
});

test('requests of /v1/search that leave hits out are recorded with how they chose', async () => {
  await server.ask('/v1/search', { queries: ['Danube'], k: 2, exclude: ['s-0001'], minScore: 0, deduplicate: 'title' });
  await server.ask('/v1/search', { queries: ['Danube'], k: 2 });
  await server.flush();
  const [chosen, plain] = readFileSync(server.records, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(-2)
    .map((line) => JSON.parse(line) as { selection?: object });
  assert.deepEqual(chosen!.selection, { minScore: 0, excluded: 1, deduplicate: 'title' });
  assert.equal(plain!.selection, undefined);
});

test('without a record of the index nothing is written, and the message names both generations', async (t) => {
  const folder = await tempFolder(t);
  const records = join(folder, 'calls.jsonl');
  const [line] = readFileSync(server.records, 'utf8').split('\n');
  writeFileSync(records, `${JSON.stringify({ ...(JSON.parse(line!) as object), generation: 'e'.repeat(32) })}\n`);
  const out = join(folder, 'out');
  await assert.rejects(
    writeBundle({ records: [records], index: server.index, out }),
    trawlError('CORPUS_EMPTY', /otherGeneration.*eeee/),
  );
  assert.deepEqual(readdirSync(folder), ['calls.jsonl']);
});

test('a record whose id is not that of its row in the index is refused', async (t) => {
  const folder = await tempFolder(t);
  const records = join(folder, 'calls.jsonl');
  const [line] = readFileSync(server.records, 'utf8').split('\n');
  const record = JSON.parse(line!) as { ids: string[] };
  writeFileSync(records, `${JSON.stringify({ ...record, ids: ['other', ...record.ids.slice(1)] })}\n`);
  const writing = writeBundle({ records: [records], index: server.index, out: join(folder, 'out') });
  await assert.rejects(writing, trawlError('INDEX_FILE_FOREIGN', /the id "other"/));
  assert.deepEqual(readdirSync(folder), ['calls.jsonl']);
});

test('an existing folder is not replaced; the partial folder of a killed run is', async (t) => {
  const folder = await tempFolder(t);
  const out = join(folder, 'out');
  mkdirSync(`${out}.partial`);
  writeFileSync(join(`${out}.partial`, 'collected.sqlite'), 'half written');
  await writeBundle({ records: [server.records], index: server.index, out });
  assert.ok(!existsSync(`${out}.partial`));
  await assert.rejects(
    writeBundle({ records: [server.records], index: server.index, out }),
    trawlError('OUTPUT_EXISTS', /already exists/),
  );
  await (await openBundle(out)).close();
});

/** A copy of the bundle to damage. */
async function copyOf(t: Parameters<typeof tempFolder>[0]): Promise<string> {
  const copy = join(await tempFolder(t), 'bundle');
  cpSync(bundle, copy, { recursive: true });
  return copy;
}

test('a damaged, cut or missing file of a bundle is refused with its name', async (t) => {
  for (const name of ['answers.sqlite', 'passages.sqlite', 'rows.f64']) {
    const bytes = readFileSync(join(bundle, name));
    const flipped = await copyOf(t);
    const changed = Buffer.from(bytes);
    changed[changed.length >> 1]! ^= 1;
    writeFileSync(join(flipped, name), changed);
    await assert.rejects(openBundle(flipped), trawlError('INDEX_CHECKSUM_MISMATCH', new RegExp(name)));
    const cut = await copyOf(t);
    writeFileSync(join(cut, name), bytes.subarray(0, bytes.length - 8));
    await assert.rejects(openBundle(cut), trawlError('INDEX_FILE_TRUNCATED', new RegExp(name)));
    const missing = await copyOf(t);
    rmSync(join(missing, name));
    await assert.rejects(openBundle(missing), trawlError('INDEX_FILE_MISSING', new RegExp(name)));
  }
});

test('a manifest of another version, another format, with a change or without a field is refused', async (t) => {
  const copy = await copyOf(t);
  const file = join(copy, 'bundle.json');
  const { checksum: _, ...manifest } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const write = (value: unknown): void => writeFileSync(file, JSON.stringify(value));
  write(withChecksum({ ...manifest, version: 2 }));
  await assert.rejects(
    openBundle(copy),
    trawlError('INDEX_VERSION_UNSUPPORTED', /version 2; this program reads version 1/),
  );
  write(withChecksum({ ...manifest, format: 'trawl-index' }));
  await assert.rejects(openBundle(copy), trawlError('INDEX_FILE_FOREIGN', /trawl-index/));
  write([]);
  await assert.rejects(openBundle(copy), trawlError('INDEX_MANIFEST_INVALID', /not a JSON object/));
  write({ ...manifest, answers: 1, checksum: 'x' });
  await assert.rejects(openBundle(copy), trawlError('INDEX_MANIFEST_INVALID', /checksum/));
  const { model: _model, ...withoutModel } = manifest;
  write(withChecksum(withoutModel));
  await assert.rejects(openBundle(copy), trawlError('INDEX_MANIFEST_INVALID', /model/));
  write(withChecksum({ ...manifest, files: [] }));
  await assert.rejects(openBundle(copy), trawlError('INDEX_MANIFEST_INVALID', /answers.sqlite/));
  writeFileSync(file, '{');
  await assert.rejects(openBundle(copy), trawlError('INDEX_MANIFEST_INVALID', /not valid JSON/));
  await assert.rejects(openBundle(join(copy, 'none')), trawlError('INDEX_NOT_FOUND', /no replay bundle/));
});

test('trawl replay --bundle and trawl serve --replay: the process serves the recorded answers and reloads', async (t) => {
  const out = join(await tempFolder(t), 'out');
  const made = await runTrawl(['replay', server.records, '--bundle', out, '--index', server.index, '--json']);
  const summary = jsonOf<{ index: string; answers: number; leftOut: Record<string, number> }>(made);
  assert.equal(summary.index, 'sample');
  const { url, child, ended } = await serveWith(t, ['--replay', out]);
  const { path, body } = CALLS[0]!;
  assert.equal((await ask(url, path, body)).text, replies[0]!.text);
  child.kill('SIGHUP');
  const reloaded = async (): Promise<boolean> =>
    /trawl_index_reloads_total\{index="sample",result="done"\} 1/.test(await (await fetch(`${url}/metrics`)).text());
  while (!(await reloaded())) await sleep(20);
  assert.equal((await ask(url, path, body)).text, replies[0]!.text);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('with --rerank, requests that do not ask for it get the recorded reranked answer, and no reranker is loaded', async (t) => {
  const { url } = await serveWith(t, ['--replay', bundle, '--rerank', 'any name', '--rerank-depth', '20']);
  const { status, text } = await ask(url, '/retrieve', { queries: [QUERY], topk: 2, return_scores: true });
  assert.equal(status, 200, text);
  const replayed = JSON.parse(text) as { result: { score: number }[][] };
  const recorded = JSON.parse(replies[CALLS.findIndex(({ name }) => name === '/v1/search, reranked')]!.text) as {
    results: { hits: { score: number }[] }[];
  };
  assert.deepEqual(
    replayed.result[0]!.map(({ score }) => score),
    recorded.results[0]!.hits.map(({ score }) => score),
  );
});

test('a killed run leaves no bundle or a complete one, and the next run writes the same bytes', async (t) => {
  const folder = await tempFolder(t);
  const args = ['--index', server.index, '--quiet'];
  for (const [i, delayMs] of [0, 150, 250, 350, 450, 600].entries()) {
    const out = join(folder, `out-${i}`);
    const child = spawnTrawl(['replay', bundled, '--bundle', out, ...args]);
    const ended = endOf(child);
    await Promise.race([ended, sleep(delayMs)]);
    child.kill('SIGKILL');
    await ended;
    if (existsSync(out)) await (await openBundle(out)).close();
    else await writeBundle({ records: [bundled], index: server.index, out });
    for (const name of readdirSync(bundle)) {
      assert.deepEqual(readFileSync(join(out, name)), readFileSync(join(bundle, name)), `${name} after ${delayMs} ms`);
    }
  }
});

test('trawl serve --replay refuses indexes and options that need one', async () => {
  for (const args of [
    [server.index],
    ['--filter', "id = 'x'"],
    ['--rerank', 'some-model', '--mode', 'bm25', '--writable', '/tmp/none'],
  ]) {
    const { code, stderr } = await runTrawl(['serve', '--replay', bundle, ...args]);
    assert.equal(code, EXIT.usage, stderr);
    assert.match(stderr, /--replay/);
  }
  const { code, stderr } = await runTrawl(['serve', '--replay', server.index]);
  assert.notEqual(code, 0);
  assert.match(stderr, /no replay bundle found/);
});
