import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { METRICS } from '../../src/engine/metric.ts';
import { referenceSearch } from '../../src/engine/reference/reference-search.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { TopK } from '../../src/engine/top-k.ts';
import { scoreFunction } from '../../src/engine/vectors/score.ts';
import { OPENSEARCH_SCORES, openSearchCandidates } from '../../src/stores/opensearch/opensearch-candidates.ts';
import { indexFiles } from '../../src/stores/opensearch/opensearch-files.ts';
import { documentOfRow, rowMappings, rowSettings } from '../../src/stores/opensearch/stored-rows.ts';
import { CandidateIndex } from '../../src/stores/published/candidate-index.ts';
import { readProgress } from '../../src/stores/published/publication.ts';
import { upperNorm } from '../../src/stores/published/published-row.ts';
import { endOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, spawnTrawl } from '../cli/run-trawl.ts';
import { toyModel } from '../encoder/model-fixtures.ts';
import { normalRows, ternaryRows } from '../engine/vectors/index-files.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { OpenSearchNode, withoutOpenSearch } from './opensearch-node.ts';

const skip = withoutOpenSearch();
const HOTPOT = 'hotpot_val500_pooled/corpus.jsonl';
const skipHotpot = skip === false ? withoutSharedData(HOTPOT) : skip;
let node: OpenSearchNode;
let folder: string;

before(async () => {
  if (skip !== false) return;
  folder = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  node = await OpenSearchNode.start();
  await trawl('index', SAMPLE_PASSAGES, '--out', join(folder, 'other'), '--model', 'token-average-256');
  await trawl('publish', join(folder, 'other'), node.address('steady'));
});
after(async () => {
  await node?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Runs a command that has to succeed. */
async function trawl(...args: string[]): Promise<string> {
  const ended = await runTrawl(args);
  assert.equal(ended.code, 0, `trawl ${args.join(' ')}: ${ended.stderr}`);
  return ended.stdout;
}

const QUESTIONS = ['Which river flows through Vienna?', 'a mountain', 'who wrote it?', ''];

/** Starts `trawl serve` and returns its URL; `started` gets the process. */
async function serve(
  t: { after(end: () => Promise<void>): void },
  place: string,
  args: readonly string[] = [],
  started: (child: ChildProcess) => void = () => undefined,
): Promise<string> {
  const child = spawnTrawl(['serve', place, '--port', '0', '--json', '--quiet', ...args]);
  t.after(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  });
  started(child);
  let stderr = '';
  child.stderr!.on('data', (text) => (stderr += text));
  const failed = once(child, 'exit').then(() => assert.fail(`trawl serve ended: ${stderr}`));
  failed.catch(() => undefined);
  const [line] = (await Promise.race([once(child.stdout!, 'data'), failed])) as [Buffer];
  return (JSON.parse(String(line)) as { url: string }).url;
}

async function post(url: string, body: unknown): Promise<{ status: number; retryAfter: string | null; text: string }> {
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: reply.status, retryAfter: reply.headers.get('retry-after'), text: await reply.text() };
}

/** Corpus rows with columns, long documents, odd ids and repeated texts. */
function corpus(): string {
  const path = join(folder, 'corpus.jsonl');
  const lines = Array.from({ length: 300 }, (_, i) =>
    JSON.stringify({
      ...(i % 11 === 0 ? {} : { id: i % 2 === 0 ? i : `p-${i}` }),
      title: `Title ${i % 40}`,
      // Each text three times, so that scores tie.
      text: `River number ${i % 100} flows "through" the town of Vienna ${'ü😀\\'.repeat(i === 7 ? 30_000 : 1)}`,
      url: `https://example.org/${i}`,
      year: 1900 + (i % 100),
      source: ['wiki', 'news'][i % 2],
    }),
  );
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

for (const metric of METRICS) {
  test(`real candidates with ${metric} are proved: the bits of a scan, with ties, filters and deleted rows`, {
    skip,
  }, async () => {
    const dimension = 24;
    const count = 9_000;
    const { values } = normalRows(count, dimension, 3);
    for (let row = 0; row < count; row++) {
      const target = values.subarray(row * dimension, (row + 1) * dimension);
      if (row % 3 === 1)
        target.set(
          values.subarray(0, dimension).map((value, j) => (j === row % dimension ? value * (1 + 2 ** -22) : value)),
        );
      // Equal scores, zero vectors among them.
      if (row % 3 === 2) target.set(ternaryRows(1, dimension, row % 50).values.map((value) => (row % 50 ? value : 0)));
    }
    const random = seededRandom(2);
    const liveRows = new RowBitmap(count);
    for (let row = 0; row < count; row++) if (random() < 0.9) liveRows.add(row);
    const client = await node.client();
    const name = `proof-${metric}`;
    try {
      await client.create(name, { settings: rowSettings({ shards: 3, copies: 1 }), mappings: rowMappings() });
      const live = [...liveRows];
      const lookups = { id: null, url: null, title: null, document: null };
      for (let at = 0; at < live.length; at += 1_000) {
        const documents = live.slice(at, at + 1_000).map((row) => {
          const vector = values.subarray(row * dimension, (row + 1) * dimension);
          return [row, documentOfRow({ row, vector, document: '', id: null, lookups, keys: [] })] as const;
        });
        await client.store(name, 'index', documents);
      }
      await client.refresh(name);
      const source = openSearchCandidates(client, { index: name, dimension, metric });
      let largestNorm = 0;
      for (let row = 0; row < count; row++)
        largestNorm = Math.max(largestNorm, upperNorm(values, row * dimension, dimension));
      const index = new CandidateIndex(source, {
        dimension,
        rows: count,
        metric,
        liveRows,
        largestNorm,
        scores: OPENSEARCH_SCORES,
        scoresEveryRow: true,
      });
      const queries = Float32Array.from([
        ...normalRows(5, dimension, 8).values,
        // Queries and rows of any length, which float32 sums could not hold.
        ...values.subarray(0, dimension).map((value) => value * 2 ** (metric === 'l2' ? 50 : 100)),
        ...values.subarray(0, dimension).map((value) => value * 2 ** -120),
        ...values.subarray(0, 2 * dimension),
      ]);
      const filters = [0.002, 0.4, 0.6, 0.999].map((share) => {
        const filter = new RowBitmap(count);
        for (const row of live) if (random() < share) filter.add(row);
        return filter;
      });
      for (const filter of [undefined, ...filters]) {
        for (const k of [1, 20, 400]) {
          const heaps = Array.from({ length: 9 }, () => new TopK(k));
          referenceSearch(
            { rows: values, rowCount: count, dimension, metric, queries, queryCount: 9, filter: filter ?? liveRows },
            heaps,
          );
          const found = await index.search({ queries, count: 9, k, filter });
          for (const [q, heap] of heaps.entries()) {
            const { rows, scores } = heap.sorted();
            assert.deepEqual([...found.rows.subarray(q * k, q * k + found.counts[q]!)], rows);
            assert.deepEqual([...found.scores.subarray(q * k, q * k + found.counts[q]!)], scores);
          }
          assert.equal(found.exact, true);
        }
      }
      // The script's own scores are those of Trawl, bit for bit.
      const [first] = await source.search(queries.subarray(0, dimension), {
        count: 1,
        limit: 50,
        among: live.length,
        condition: { type: 'all' },
      });
      const score = scoreFunction(metric, dimension);
      for (const [i, row] of [...first!.rows].entries())
        assert.equal(first!.values[i], score(queries, 0, values, row * dimension));
      assert.equal(first!.total, live.length);
    } finally {
      await client.close();
    }
  });
}

test('a published index answers as its folder, with filters, deleted rows, look-ups and long documents', {
  skip,
}, async (t) => {
  const local = join(folder, 'local');
  await trawl(
    'index',
    corpus(),
    '--out',
    local,
    '--model',
    'token-average-256',
    '--passage-template',
    '{text}',
    '--column',
    'year:number',
    '--column',
    'source:string',
  );
  await trawl('remove', local, 'p-1', '4', 'p-299');
  const address = node.address('answers');
  const report = JSON.parse(await trawl('publish', local, address, '--shards', '2', '--json'));
  const { verified, address: shown, ...facts } = report;
  assert.deepEqual(facts, { collection: 'answers', rows: 297, resumed: false, wasComplete: false, alias: null });
  assert.equal(shown, address);
  // Two samples may be the row after the same deleted one.
  assert.ok(verified.rows > 60 && verified.questions === verified.rows && verified.same === verified.rows);
  assert.equal(JSON.parse(await trawl('publish', local, address, '--json')).wasComplete, true);
  assert.match(await trawl('verify', address), /intact/);
  assert.match(
    await trawl('inspect', address),
    /300 × 256, inner-product; 297 in OpenSearch.*\n.*\n.*2; every row is scored.*\n.*modes +dense\n.*year \(number\), source \(string\)/,
  );
  assert.match(
    await trawl('doctor', address),
    /answers, 297 rows, health green.*\n.*modes +dense\n.*ms for 10 rows.*\n.*complete and ready/,
  );

  const [here, there] = await Promise.all([serve(t, local), serve(t, `local=${address}`)]);
  const bodies: [string, unknown][] = [
    ['/retrieve', { queries: QUESTIONS.slice(0, 3), topk: 7, return_scores: true }],
    ['/v1/search', { queries: QUESTIONS.slice(0, 3), k: 300 }],
    ...["source = 'wiki'", 'year >= 1990', "year = 1933 and source = 'news'", 'year != 1900', 'year > 3000'].map(
      (filter): [string, unknown] => ['/v1/search', { queries: QUESTIONS.slice(0, 3), k: 12, filter }],
    ),
  ];
  const comparable = (text: string): unknown =>
    JSON.parse(text, (key, value) => (key === 'timings' || key === 'rescored' || key === 'took' ? undefined : value));
  for (const [path, body] of bodies) {
    const [a, b] = await Promise.all([post(here + path, body), post(there + path, body)]);
    assert.equal(a.status, 200, a.text);
    assert.deepEqual(comparable(b.text), comparable(a.text), JSON.stringify(body));
  }
  for (const path of ['/v1/passages/p-3', '/v1/passages/6', '/v1/passages/p-6', '/v1/passages/p-1', '/v1/passages/7']) {
    const [a, b] = await Promise.all([here, there].map(async (url) => (await fetch(url + path)).text()));
    assert.deepEqual(comparable(b!), comparable(a!), path);
  }

  const refused = await runTrawl(['publish', join(folder, 'other'), address]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /is of another index.*\[INDEX_EXISTS\]/);

  // OpenSearch refuses writes to a published index; whoever lifts that is found out.
  const changed = { doc: { document: '{"text":"changed"}' } };
  await assert.rejects(node.request('POST', '/answers/_update/10', changed), /cluster_block_exception/);
  await node.request('PUT', '/answers/_settings', { index: { blocks: { write: false } } });
  await node.request('POST', '/answers/_update/10?refresh=true', changed);
  const damaged = await runTrawl(['verify', address]);
  assert.equal(damaged.code, 3, damaged.stdout + damaged.stderr);
  assert.match(damaged.stdout, /Row 10 has no vector/);
  await node.request('DELETE', '/answers/_doc/10?refresh=true');
  const incomplete = await post(`${there}/v1/search`, { queries: ['another question'], k: 5 });
  assert.match(incomplete.text, /returned 296 candidates of 297/);
  assert.equal(incomplete.status, 503, incomplete.text);
  const reopened = await runTrawl(['search', address, 'x']);
  assert.match(reopened.stderr, /296 rows, but 297 were published.*\[STORE_DIFFERS\]/);
});

test('a killed publication is resumed, and the collection is an index only after its end', {
  skip: skipHotpot,
}, async () => {
  const local = join(folder, 'hotpot');
  await trawl('index', sharedData(HOTPOT), '--out', local, '--model', 'token-average-256');
  const address = node.address('resumed');
  const publishing = spawnTrawl(['publish', local, address, '--quiet']);
  const client = await node.client();
  try {
    // Killed after the first record of progress, before the last.
    for (;;) {
      const progress = await readProgress(indexFiles(client, 'resumed')).catch(() => undefined);
      if ((progress?.nextRow ?? 0) > 0) break;
      assert.equal(publishing.exitCode, null, 'the publication ended before it was killed');
      await pause(20);
    }
    publishing.kill('SIGKILL');
    await endOf(publishing);
    const unfinished = await runTrawl(['search', address, 'x']);
    assert.match(unfinished.stderr, /the publication into resumed is unfinished.*\[INDEX_NOT_FOUND\]/);
    const report = JSON.parse(await trawl('publish', local, address, '--json'));
    assert.equal(report.resumed, true);
    assert.equal(report.rows, 4_937);
    assert.match(await trawl('verify', address), /intact/);
  } finally {
    await client.close();
  }
});

test('a build into OpenSearch is published with its words, done again without a build, and refused before a build if the name is taken', {
  skip,
}, async () => {
  const address = node.address('built');
  const work = join(folder, 'work');
  const build = ['index', SAMPLE_PASSAGES, '--model', 'token-average-256', '--bm25', '--out', address];
  const first = await trawl(...build, '--work', work, '--json');
  const [built, published] = first
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(built.built, true);
  assert.equal(published.collection, 'built');
  assert.equal(published.verified.texts, published.verified.questions);
  assert.match(await trawl('search', address, 'Eiffel Tower', '--mode', 'hybrid'), /Eiffel/);
  const again = await trawl(...build, '--work', work, '--json');
  const [second, checked] = again
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(second.built, false);
  assert.equal(checked.wasComplete, true);

  const elsewhere = join(folder, 'elsewhere');
  const taken = await runTrawl([...build, '--work', elsewhere]);
  assert.match(
    taken.stderr,
    /built: the index has rows of an index already, and --work has no complete one.*\[INDEX_EXISTS\]/,
  );
  assert.equal(existsSync(elsewhere) || existsSync(`${elsewhere}.partial`), false, 'nothing was built');
  await node.request('PUT', '/foreign');
  const foreign = await runTrawl(['index', 'no-such-corpus', '--out', node.address('foreign'), '--work', elsewhere]);
  assert.match(foreign.stderr, /foreign: the index was not made by `trawl publish`.*\[INDEX_EXISTS\]/);
});

test('an alias is moved to the next index, and a reload takes it', { skip }, async (t) => {
  const first = join(folder, 'other');
  const second = join(folder, 'next');
  await trawl('index', corpus(), '--out', second, '--model', 'token-average-256', '--passage-template', '{text}');
  await trawl('publish', first, node.address('swap-1'), '--alias', 'live');
  let server: ChildProcess | undefined;
  const url = await serve(t, node.address('live'), [], (child) => (server = child));
  const ask = async (): Promise<string> => {
    const { status, text } = await post(`${url}/retrieve`, { queries: ['Which river flows through Vienna?'], topk: 3 });
    assert.equal(status, 200, text);
    return text;
  };
  const before = await ask();
  await trawl('publish', second, node.address('swap-2'), '--alias', 'live');
  assert.equal(await ask(), before, 'a running server stays with the collection that it opened');
  server!.kill('SIGHUP');
  const answers = new Set<string>();
  for (let i = 0; i < 200; i++) {
    const answer = await ask();
    answers.add(answer);
    if (answer !== before) break;
    await pause(100);
  }
  const after = await ask();
  assert.notEqual(after, before);
  for (const answer of answers) assert.ok(answer === before || answer === after);
  const same = await runTrawl(['publish', first, node.address('live')]);
  assert.match(same.stderr, /live is an alias of swap-2.*\[INDEX_EXISTS\]/);
});

test('an index in OpenSearch is opened with its own encoder alone, also by a reload of an alias', {
  skip,
}, async (t) => {
  const toy = await toyModel(t);
  const place = node.address('steady');
  for (const args of [
    ['search', place, 'a mountain'],
    ['serve', place, '--port', '0'],
    ['eval', place, '--queries', join(SAMPLE, 'questions.jsonl')],
  ]) {
    const { code, stderr } = await runTrawl([...args, '--model', toy]);
    assert.equal(code, 1, args[0]);
    assert.match(stderr, /built with token-average-256, but the query encoder is toy\. .*sha256.*\[MODEL_MISMATCH\]/);
  }
  await trawl('publish', join(folder, 'other'), place, '--alias', 'models');
  const url = await serve(t, node.address('models'), ['--model', 'token-average-256']);
  const ask = (): Promise<{ status: number; text: string }> =>
    post(`${url}/retrieve`, { queries: QUESTIONS.slice(0, 2), topk: 3 });
  const before = await ask();
  assert.equal(before.status, 200, before.text);
  const few = join(folder, 'few.jsonl');
  writeFileSync(few, Array.from({ length: 40 }, (_, i) => JSON.stringify({ id: i, text: `river ${i}` })).join('\n'));
  await trawl('index', few, '--out', join(folder, 'toy'), '--model', toy);
  await trawl('publish', join(folder, 'toy'), node.address('toy'), '--alias', 'models');
  const { indexes } = (await (await fetch(`${url}/v1/indexes`)).json()) as { indexes: { name: string }[] };
  const reload = await post(`${url}/admin/indexes/${indexes[0]!.name}/reload`, {});
  assert.match(reload.text, /RELOAD_FAILED.*MODEL_MISMATCH.*The old index still answers/);
  assert.equal((await ask()).text, before.text, 'the server stays with the index that it opened');
});

test('a server whose OpenSearch is killed answers 503 with Retry-After, never a partial list, and again once it is back', {
  skip,
}, async (t) => {
  const url = await serve(t, node.address('steady'), ['--cache-bytes', '0']);
  let number = 0;
  // A new query each time, so that no earlier answer is repeated.
  const ask = (text = `question ${number++}`) => post(`${url}/retrieve`, { queries: [text], topk: 3 });
  const before = await ask('Vienna');
  assert.equal(before.status, 200);
  await node.kill();
  const failed = await ask();
  assert.equal(failed.status, 503, failed.text);
  assert.ok(Number(failed.retryAfter) >= 1);
  await node.begin();
  for (;;) {
    // While its shards start, it has no complete answer.
    const again = await ask('Vienna');
    if (again.status === 200) {
      assert.equal(again.text, before.text);
      break;
    }
    assert.equal(again.status, 503, again.text);
    await pause(500);
  }
});
