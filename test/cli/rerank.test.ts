import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { writeCrossEncoder } from '../encoder/rerank/tiny-cross-encoder.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, sampleIndex } from './run-trawl.ts';

const folder = await fileFolder();
const reranker = join(folder, 'models', 'tiny-reranker');
let index: string;
before(async () => {
  index = await sampleIndex(folder);
  const checkpoint = join(folder, 'tiny-reranker');
  mkdirSync(checkpoint);
  writeCrossEncoder(checkpoint);
  const added = await runTrawl(['model', 'add', checkpoint, '--precision', 'float32'], { cwd: folder });
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stderr, /Next: trawl serve indexes\/NAME --rerank tiny-reranker\n$/);
});

interface Report {
  readonly timings: Record<string, number>;
  readonly hits: {
    readonly row: number;
    readonly score: number;
    readonly firstStage?: { readonly rank: number; readonly score: number };
  }[];
}

const QUERY = 'designer of the Brooklyn Bridge';

test('trawl search --rerank orders the passages of the search by the cross-encoder', async () => {
  const found = jsonOf<Report>(await runTrawl(['search', index, QUERY, '--k', '10', '--json', '--quiet']));
  const run = ['search', index, QUERY, '--k', '3', '--rerank', reranker, '--rerank-depth', '10', '--json', '--quiet'];
  const { hits, timings } = jsonOf<Report>(await runTrawl(run));
  assert.equal(hits.length, 3);
  assert.ok(hits[0]!.score >= hits[1]!.score && hits[1]!.score >= hits[2]!.score);
  for (const { row, firstStage } of hits) {
    const first = found.hits[firstStage!.rank - 1]!;
    assert.deepEqual([row, firstStage!.score], [first.row, first.score]);
  }
  assert.ok(timings.rerank! > 0);
  assert.deepEqual(jsonOf<Report>(await runTrawl(run)).hits, hits);
});

test('a cross-encoder as encoder, and an encoder as reranker, are refused with what fits and the command for them', async () => {
  const out = join(folder, 'refused');
  const encoder = await runTrawl(['index', SAMPLE_PASSAGES, '--model', reranker, '--out', out]);
  assert.match(
    encoder.stderr,
    /is a cross-encoder.*intfloat\/e5-base-v2.*trawl serve INDEX --rerank MODEL.*MODEL_INVALID/s,
  );
  const scorer = await runTrawl(['search', index, QUERY, '--rerank', 'token-average-256']);
  assert.match(
    scorer.stderr,
    /is an encoder.*BAAI\/bge-reranker-base.*trawl index CORPUS --model MODEL.*MODEL_INVALID/s,
  );
  for (const { code } of [encoder, scorer]) assert.notEqual(code, 0);
});

test('without --json, each passage has its rank and score in the search', async () => {
  const { stdout, stderr, code } = await runTrawl(['search', index, QUERY, '--k', '2', '--rerank', reranker]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^1\. -?\d+\.\d{4} {2}.* {2}\(id .*, found as \d+ with 0\.\d{4}\)$/m);
  assert.match(stderr, /fetch .*, rerank .*ms$/m);
});

test('a file of queries and an evaluation are reranked too', async () => {
  const questions = join(SAMPLE, 'questions.jsonl');
  const out = join(folder, 'hits.jsonl');
  const options = ['--rerank', reranker, '--rerank-depth', '5', '--rerank-threads', '1', '--quiet'];
  const { code, stderr } = await runTrawl([
    'search',
    index,
    '--queries',
    questions,
    '--k',
    '2',
    '--out',
    out,
    ...options,
  ]);
  assert.equal(code, 0, stderr);
  const [first] = readFileSync(out, 'utf8')
    .split('\n')
    .map((line) => line && (JSON.parse(line) as Report));
  assert.ok((first as Report).hits[0]!.firstStage!.rank <= 5);
  const evaluation = ['eval', index, '--queries', questions, '--cutoffs', '5', '--json'];
  const plain = jsonOf<{ metrics: Record<string, number> }>(await runTrawl([...evaluation, '--quiet']));
  const reranked = jsonOf<{ metrics: Record<string, number> }>(await runTrawl([...evaluation, ...options]));
  assert.equal(reranked.metrics['recall@5'], plain.metrics['recall@5'], 'the same five passages');
  assert.notEqual(reranked.metrics['ndcg@5'], plain.metrics['ndcg@5'], 'in another order');
});

test('mistakes end the command with the reason', async () => {
  const mistakes: [string[], RegExp][] = [
    [['--rerank-depth', '5'], /--rerank-depth has no effect without --rerank MODEL/],
    [['--rerank', 'nowhere'], /MODEL_NOT_FOUND/],
    [['--rerank', reranker, '--rerank-api', 'tei'], /--rerank-api has no effect unless --rerank is a URL/],
    [['--rerank', 'http://127.0.0.1:1', '--rerank-key-file', '/nowhere'], /CONFIG_INVALID/],
    [['--rerank', 'token-average-256'], /MODEL_INVALID/],
    [['--rerank', reranker, '--rerank-depth', '0'], /--rerank-depth/],
    [['--rerank', reranker, '--rerank-max-tokens', '10'], /RERANK_TOO_LARGE/],
  ];
  for (const [options, message] of mistakes) {
    const { code, stderr } = await runTrawl(['search', index, QUERY, ...options]);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  }
  const listener = ['serve', index, '--port', '0', '--listen', '0=search-r1:rerank-depth=3'];
  assert.match((await runTrawl(listener)).stderr, /rerank-depth of --listen has no effect without --rerank/);
});

test('a cross-encoder is listed and shown as such', async () => {
  const { stdout } = await runTrawl(['model', 'show', reranker]);
  assert.match(stdout, /cross-encoder/);
  assert.match(stdout, /max tokens +\d+ a pair/);
  assert.doesNotMatch(stdout, /prefixes|dimension/);
});
