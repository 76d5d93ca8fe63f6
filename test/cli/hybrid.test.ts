import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { TrawlClient } from '../../src/client/index.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { freePort } from './free-port.ts';
import { fileFolder, jsonOf, postJson, runTrawl, SAMPLE, SAMPLE_PASSAGES, serveIndex } from './run-trawl.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
const index = join(folder, 'both');
const words = join(folder, 'words');
before(async () => {
  if (!loaded.ok) return;
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', index, '--bm25', '--model', 'token-average-256', '--quiet']);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', words, '--bm25', '--quiet']);
});

const VIENNA = 'Which river flows through Vienna?';

interface Place {
  readonly rank: number;
  readonly score: number;
}

interface Report {
  readonly hits: readonly {
    readonly score: number;
    readonly dense: Place | null;
    readonly bm25: Place | null;
    readonly document: { readonly id: string };
  }[];
}

async function hitsOf(...more: string[]): Promise<Report['hits']> {
  return jsonOf<Report>(await runTrawl(['search', index, VIENNA, '--mode', 'hybrid', '--json', ...more])).hits;
}

test('search --mode hybrid fuses both lists and shows the ranks in them', { skip }, async () => {
  const hits = await hitsOf('--hybrid-fusion', 'rrf');
  for (const { score, dense, bm25 } of hits) {
    const part = (place: Place | null): number => (place === null ? 0 : 1 / (10 + place.rank));
    assert.equal(score, Math.fround(part(dense) + part(bm25)));
  }
  const { stdout } = await runTrawl(['search', index, VIENNA, '--mode', 'hybrid', '--hybrid-depth', '1']);
  assert.match(stdout, /\(id s-\d+; dense 1, bm25 (1|–)\)/);
});

test('search --mode hybrid --explain shows what each list adds to a score, the terms and the formula', {
  skip,
}, async () => {
  const args = ['search', index, VIENNA, '--mode', 'hybrid', '--explain', '--hybrid-weights', 'dense=0.3,bm25=0.7'];
  const { fusion, hits } = jsonOf<{
    fusion: { formula: string; denseWeight: number; lists: object[] };
    hits: { score: number; terms: object[]; dense: { part: number } | null; bm25: { part: number } | null }[];
  }>(await runTrawl([...args, '--json']));
  assert.deepEqual([fusion.denseWeight, fusion.lists.length], [0.3, 1]);
  assert.equal(fusion.formula, '0.3 · (dense score − floor) / deviation + 0.7 · (bm25 score − floor) / deviation');
  for (const { score, dense, bm25 } of hits) assert.equal(Math.fround((dense?.part ?? 0) + (bm25?.part ?? 0)), score);
  assert.ok(hits[0]!.terms.length > 0);
  const { stdout, stderr } = await runTrawl(args);
  assert.match(stdout, /; dense \d+ adds \d+\.\d{4}, bm25 \d+ adds \d+\.\d{4}\)\n {5}term /);
  assert.match(stderr, /^score = 0\.3 · /m);
});

test('several indexes are searched and evaluated as one, with --index', { skip }, async () => {
  const both = ['search', index, VIENNA, '--mode', 'bm25', '--k', '4', '--index', `more=${words}`];
  const { hits } = jsonOf<{ hits: { index: string; row: number; score: number; indexScore: number }[] }>(
    await runTrawl([...both, '--json', '--explain']),
  );
  assert.deepEqual(
    hits.map((hit) => hit.index),
    ['both', 'more', 'both', 'more'],
  );
  assert.deepEqual([hits[0]!.row, hits[0]!.indexScore], [hits[1]!.row, hits[1]!.indexScore]);
  assert.equal(hits[0]!.score, Math.fround(1 / 61));
  const { stdout } = await runTrawl(both);
  assert.match(stdout, /\(id s-\d+, index more\)/);
  const questions = join(SAMPLE, 'questions.jsonl');
  const out = join(folder, 'hits.jsonl');
  const file = ['search', index, '--queries', questions, '--out', out, '--mode', 'bm25', '--index', `more=${words}`];
  assert.equal((await runTrawl(file)).code, 0);
  assert.match(readFileSync(out, 'utf8'), /"hits":\[\{"index":"both","row":\d+,"id":"s-\d+"/);
  // A passage of both indexes counts once, so that of 2 k places k passages are left.
  const recall = async (k: number, ...more: string[]): Promise<number> => {
    const args = ['eval', index, '--queries', questions, '--mode', 'bm25', '--cutoffs', String(k), '--json', ...more];
    return jsonOf<{ metrics: Record<string, number> }>(await runTrawl(args)).metrics[`recall@${k}`]!;
  };
  assert.equal(await recall(10, '--index', `more=${words}`), await recall(5));
});

test('wrong further indexes are refused: one of the same name, one that is none, and one without the mode', {
  skip,
}, async () => {
  for (const [args, code, message] of [
    [['--index', index], 2, /Two indexes have the name both.*NAME=DIR/],
    [['--index', `a b=${words}`], 2, /"a b" cannot be the name of an index/],
    [['--index', `x=${join(folder, 'none')}`], 1, /INDEX_NOT_FOUND/],
    [['--index', words, '--mode', 'dense'], 1, /no vectors/],
  ] as const) {
    const result = await runTrawl(['search', index, VIENNA, ...args]);
    assert.equal(result.code, code, args.join(' '));
    assert.match(result.stderr, message);
  }
});

test('the options set the fusion, and those of bm25 apply to its list', { skip }, async () => {
  const scores = async (...more: string[]): Promise<number[]> => (await hitsOf(...more)).map(({ score }) => score);
  const usual = await scores();
  assert.deepEqual(await scores('--hybrid-fusion', 'weighted', '--hybrid-weights', 'dense=0.5,bm25=0.5'), usual);
  const variants = [
    usual,
    await scores('--hybrid-fusion', 'rrf'),
    await scores('--hybrid-fusion', 'rrf', '--hybrid-rrf-k', '1'),
    await scores('--hybrid-weights', 'dense=0.2'),
    await scores('--hybrid-weights', 'dense=0.2,bm25=0.8'),
    await scores('--hybrid-weights', 'dense=0.2,bm25=0.8', '--hybrid-depth', '9'),
  ];
  assert.equal(new Set(variants.map(String)).size, variants.length);
  const k1 = await hitsOf('--k1', '3');
  assert.notDeepEqual(
    k1.map(({ bm25 }) => bm25?.score),
    (await hitsOf()).map(({ bm25 }) => bm25?.score),
  );
  assert.equal((await hitsOf('--k', '120')).length, 120, 'the lists are as deep as k');
});

test('eval --mode hybrid measures the fused ranking', { skip }, async () => {
  const queries = join(SAMPLE, 'questions.jsonl');
  const recall = async (...ranking: string[]): Promise<number> => {
    const ended = await runTrawl(['eval', index, '--queries', queries, '--json', ...ranking]);
    return jsonOf<{ metrics: Record<string, number> }>(ended).metrics['recall@10']!;
  };
  const hybrid = await recall('--mode', 'hybrid');
  assert.ok(hybrid > (await recall('--mode', 'bm25')));
  assert.ok(hybrid > (await recall('--mode', 'dense')));
});

test('options without effect, wrong values and an index without vectors are refused', { skip }, async () => {
  for (const [args, message] of [
    [['--hybrid-depth', '5'], /--hybrid-depth has no effect without --mode hybrid/],
    [['--mode', 'bm25', '--hybrid-fusion', 'rrf'], /--hybrid-fusion has no effect without --mode hybrid/],
    [['--mode', 'hybrid', '--bm25-order', 'pyserini'], /--bm25-order has no effect without --mode bm25/],
    [['--mode', 'dense', '--k1', '1'], /--k1 has no effect without --mode bm25 or hybrid/],
    [['--mode', 'hybrid', '--hybrid-weights', '0.5,0.5'], /--hybrid-weights is "0\.5,0\.5"; expected dense and bm25/],
    [['--mode', 'hybrid', '--hybrid-weights', 'dense=0,bm25=0'], /at least one weight must not be 0/],
    [['--mode', 'hybrid', '--hybrid-weights', 'dense=x'], /dense of --hybrid-weights is "x"; expected a number from 0/],
    [['--mode', 'hybrid', '--hybrid-weights', 'dense=nan,bm25=1'], /dense of --hybrid-weights is "nan"; expected/],
    [['--mode', 'hybrid', '--hybrid-rrf-k', '-1'], /--hybrid-rrf-k is "-1"/],
    [['--mode', 'hybrid', '--hybrid-fusion', 'sum'], /hybrid-fusion/],
  ] as const) {
    const { code, stderr } = await runTrawl(['search', index, VIENNA, ...args]);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, message);
  }
  for (const command of [
    ['search', words, VIENNA],
    ['serve', words, '--port', '0', '--quiet'],
  ]) {
    const { code, stderr } = await runTrawl([...command, '--mode', 'hybrid']);
    assert.equal(code, 1);
    assert.match(stderr, /no vectors.*The mode hybrid needs vectors and an inverted index/s);
  }
});

test('serve --mode hybrid ranks every request so, and an address has its own mode and fusion', { skip }, async (t) => {
  const [densePort, rrfPort] = [await freePort(), await freePort()];
  const { url } = await serveIndex(t, index, [
    ...['--mode', 'hybrid', '--hybrid-weights', 'dense=0.5,bm25=2', '--mcp'],
    ...['--listen', `${densePort}:mode=dense`, '--listen', `${rrfPort}=search-r1:hybrid-fusion=rrf`],
  ]);
  const scoresAt = async (base: string): Promise<number[]> => {
    const { body } = await postJson<{ result: { score: number }[][] }>(base, {
      queries: [VIENNA],
      topk: 3,
      return_scores: true,
    });
    return body.result[0]!.map(({ score }) => score);
  };
  const expected = async (...more: string[]): Promise<number[]> =>
    (await hitsOf('--k', '3', ...more)).map(({ score }) => score);
  assert.deepEqual(await scoresAt(url), await expected('--hybrid-weights', 'dense=0.5,bm25=2'));
  assert.deepEqual(await scoresAt(`http://127.0.0.1:${rrfPort}`), await expected('--hybrid-fusion', 'rrf'));
  const client = new TrawlClient(url);
  const usual = await client.search({ queries: [VIENNA], k: 3, mode: 'dense' });
  const [first] = usual.results;
  assert.ok(first?.ok === true);
  const ofDense = first.hits!.map(({ score }) => score);
  assert.deepEqual(await scoresAt(`http://127.0.0.1:${densePort}`), ofDense);
  const hybrid = await client.search({ queries: [VIENNA], k: 3, hybrid: { fusion: 'rrf', depth: 20 } });
  const [fused] = hybrid.results;
  assert.ok(hybrid.mode === 'hybrid' && fused?.ok === true);
  assert.equal(fused.certificate.depth, 20);
  assert.ok(fused.hits!.every(({ dense, bm25 }) => dense != null || bm25 != null));
  const tool = async (args: object): Promise<{ id: string; score: number }[]> => {
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'search', arguments: { query: VIENNA, k: 3, ...args } },
      }),
    });
    const { result } = (await response.json()) as {
      result: { structuredContent: { results: { id: string; score: number }[] } };
    };
    return result.structuredContent.results;
  };
  assert.deepEqual(
    (await tool({})).map(({ score }) => score),
    await scoresAt(url),
  );
  assert.deepEqual(
    (await tool({ mode: 'dense' })).map(({ score }) => score),
    ofDense,
  );
});
