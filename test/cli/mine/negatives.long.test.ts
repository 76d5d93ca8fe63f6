import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MiningSummary } from '../../../training/mining/mine-negatives.ts';
import { writeCrossEncoder } from '../../encoder/rerank/tiny-cross-encoder.ts';
import { linesOf, PLANTED, QUESTIONS, questions, SUB_QUERIES } from '../../training/mining/mining-corpus.ts';
import { runTrawl } from '../run-trawl.ts';
import { folder, index, mine } from './planted-index.ts';

test('planted false negatives are no negatives, and the report says which rule dropped each', async () => {
  const { rows, report } = await mine(['--range-max', '300', '--num-negatives', '300']);
  const row = rows.find(({ query_id }) => query_id === 'q-001')!;
  assert.deepEqual(
    row.positive_passages.map(({ docid }) => docid),
    ['s-0001'],
  );
  const negatives = row.negative_passages.map(({ docid }) => docid);
  assert.ok(negatives.length > 100);
  for (const planted of ['s-0001', ...Object.values(PLANTED)]) assert.ok(!negatives.includes(planted), planted);
  const reasonOf = (id: string, reason: keyof MiningSummary['dropped']): void => {
    assert.ok(report.dropped[reason] > 0, reason);
    const shown = report.examples.dropped[reason]!;
    assert.ok(shown.length >= 1 && shown.length <= 3, `${reason} of ${id}`);
  };
  reasonOf('s-0001', 'positive');
  reasonOf(PLANTED.copy, 'copy');
  reasonOf(PLANTED.nearDuplicate, 'near_duplicate');
  reasonOf(PLANTED.answer, 'answer');
  reasonOf(PLANTED.query, 'query');
  assert.ok(report.examples.dropped.copy!.every(({ dropped }) => dropped.id === PLANTED.copy));
  assert.deepEqual(
    report.examples.dropped.query!.map(({ dropped }) => dropped.id),
    [PLANTED.query],
  );
});

test('the counts of the report add up, and agree with the rows', async () => {
  const { rows, report } = await mine(['--num-negatives', '7']);
  const dropped = Object.values(report.dropped).reduce((sum, n) => sum + n, 0);
  assert.equal(report.candidates.in_window, dropped + report.candidates.left);
  assert.equal(report.candidates.in_window, 100 * report.queries);
  assert.equal(report.rows, rows.length);
  assert.equal(report.mined, rows.length);
  const negatives = rows.flatMap(({ negative_passages }) => negative_passages);
  assert.equal(report.negatives.found, negatives.length);
  assert.equal(report.negatives.wanted, 7 * report.queries);
  assert.equal(
    report.ranks.reduce((sum, bin) => sum + bin.count, 0),
    negatives.length,
  );
  assert.equal(
    report.negative_scores.reduce((sum, bin) => sum + bin.count, 0),
    negatives.length,
  );
  assert.equal(report.examples.rows.length, 5);
  assert.equal(report.read.read, questions().length);
});

test('ranks are those of the search, from 1 and inclusive, whatever the rules drop', async () => {
  const { rows } = await mine(['--range-min', '3', '--range-max', '6', '--num-negatives', '4']);
  const hits = join(folder, 'hits.jsonl');
  const searched = await runTrawl(['search', index, '--queries', QUESTIONS, '--k', '6', '--out', hits, '--quiet']);
  assert.equal(searched.code, 0, searched.stderr);
  const lists = new Map(
    linesOf<{ id: string; hits: { id: string; score: number }[] }>(hits).map((line) => [line.id, line.hits]),
  );
  let seen = 0;
  for (const { query_id, negative_passages } of rows) {
    for (const { docid, rank, score } of negative_passages) {
      assert.ok(rank >= 3 && rank <= 6);
      assert.deepEqual({ id: docid, score }, pick(lists.get(query_id)![rank - 1]!));
      seen++;
    }
  }
  assert.ok(seen > 100);
});

function pick({ id, score }: { id: string; score: number }): { id: string; score: number } {
  return { id, score };
}

test('positives of other sub-queries for the question are no negatives', async () => {
  const { rows, origins, report } = await mine(['--range-max', '300', '--num-negatives', '300'], SUB_QUERIES);
  const byQuestion = new Map<string, Set<string>>();
  const asked = linesOf<{ id: string; question: string; gold_ids: string[] }>(SUB_QUERIES);
  for (const { question, gold_ids } of asked) {
    byQuestion.set(question, new Set([...(byQuestion.get(question) ?? []), ...gold_ids]));
  }
  for (const row of rows) {
    const { question } = asked.find(({ id }) => id === row.query_id)!;
    const relevant = byQuestion.get(question)!;
    assert.deepEqual(
      row.negative_passages.filter(({ docid }) => relevant.has(docid)),
      [],
      row.query_id,
    );
    assert.ok(row.query.startsWith(`${question} [SEP] `));
  }
  assert.ok(report.dropped.sibling > 50);
  const groups = new Set(origins.map(({ group }) => group));
  assert.equal(groups.size, byQuestion.size);
});

test('a query that two lines ask is one, with the positives of both', async () => {
  const queries = join(folder, 'repeated.jsonl');
  const line = { id: 'a', question: 'Which river flows through Vienna?', query: 'Vienna river' };
  writeFileSync(
    queries,
    [
      { ...line, gold_ids: ['s-0001'] },
      { ...line, id: 'b', gold_ids: ['s-0002'] },
    ]
      .map((each) => `${JSON.stringify(each)}\n`)
      .join(''),
  );
  const { rows, report } = await mine([], queries);
  assert.equal(report.read.merged, 1);
  assert.deepEqual(
    rows.map(({ query_id, positive_passages }) => [query_id, positive_passages.map(({ docid }) => docid)]),
    [['a', ['s-0001', 's-0002']]],
  );
});

test('thresholds and margins hold for every negative, against the lowest positive', async () => {
  const { rows, report } = await mine(['--max-score', '0.5', '--min-score', '0.1', '--relative-margin', '0.2']);
  assert.ok(rows.length > 20);
  for (const { positive_passages, negative_passages } of rows) {
    const lowest = Math.min(...positive_passages.map(({ score }) => score));
    for (const { score } of negative_passages) {
      assert.ok(score <= 0.5 && score >= 0.1 && score <= lowest - Math.abs(lowest) * 0.2);
    }
  }
  assert.ok(report.dropped.max_score > 0 && report.dropped.relative_margin > 0);
  const absolute = await mine(['--absolute-margin', '0.15']);
  for (const { positive_passages, negative_passages } of absolute.rows) {
    const lowest = Math.min(...positive_passages.map(({ score }) => score));
    for (const { score } of negative_passages) assert.ok(score + 0.15 <= lowest);
  }
  assert.ok(absolute.report.unmined.too_few_negatives > 0);
  assert.equal(absolute.report.unmined.too_few_negatives + absolute.report.mined, absolute.report.queries);
});

test('a positive outside of the list gets the score that a search gives it', async () => {
  const { rows } = await mine(['--range-max', '1', '--num-negatives', '1']);
  const outside = rows.flatMap(({ query_id, positive_passages }) =>
    positive_passages.filter(({ rank }) => rank === null).map((positive) => ({ query_id, ...positive })),
  );
  assert.ok(outside.length > 0);
  const deep = await mine(['--range-max', '300', '--num-negatives', '1']);
  for (const { query_id, docid, score } of outside) {
    const found = deep.rows.find((row) => row.query_id === query_id)!.positive_passages.find((p) => p.docid === docid)!;
    assert.equal(score, found.score);
    assert.ok(found.rank > 1);
  }
});

test('BM25, both lists and hybrid give candidates; hybrid has no score for a positive outside of its list', async () => {
  const words = await mine(['--mode', 'bm25', '--relative-margin', '0.1']);
  assert.ok(words.rows.length > 20 && words.rows.every((row) => row.negative_passages.every(({ score }) => score > 0)));
  const dense = await mine(['--range-max', '10', '--num-negatives', '20', '--also-bm25']);
  const alone = await mine(['--range-max', '10', '--num-negatives', '10']);
  assert.ok(dense.report.candidates.in_window > alone.report.candidates.in_window);
  for (const { negative_passages } of dense.rows) {
    const ranks = negative_passages.map(({ rank }) => rank);
    assert.deepEqual(
      ranks,
      ranks.toSorted((a, b) => a - b),
    );
    for (const { score } of negative_passages) assert.ok(score <= 1);
  }
  const hybrid = await mine([
    '--mode',
    'hybrid',
    '--range-max',
    '2',
    '--num-negatives',
    '1',
    '--relative-margin',
    '0.01',
  ]);
  assert.ok(hybrid.report.unmined.positive_without_score > 0);
});

test('a random choice is the same in another order of the file, and with other questions beside it', async () => {
  const args = ['--sampling-strategy', 'random', '--seed', '5', '--num-negatives', '4', '--range-max', '40'];
  const all = await mine(args);
  const reversed = join(folder, 'reversed.jsonl');
  const lines = readFileSync(QUESTIONS, 'utf8').trim().split('\n').reverse();
  writeFileSync(reversed, `${lines.slice(0, 60).join('\n')}\n`);
  const some = await mine(args, reversed);
  const byId = new Map(all.rows.map((row) => [row.query_id, row]));
  assert.ok(some.rows.length > 30);
  for (const row of some.rows) assert.deepEqual(row, byId.get(row.query_id));
  const other = await mine([...args.slice(0, 3), '6', ...args.slice(4)]);
  assert.notDeepEqual(other.rows, all.rows);
});

test('excluded questions get no row, and are counted', async () => {
  const test = join(folder, 'test-set.jsonl');
  const [first, second] = questions();
  writeFileSync(
    test,
    `${JSON.stringify({ _id: 'x', text: first!.question.toUpperCase() })}\n${JSON.stringify({ id: 'y', question: second!.question })}\n`,
  );
  const { rows, report } = await mine(['--exclude-questions', test]);
  assert.equal(report.read.excluded, 2);
  assert.ok(!rows.some(({ query_id }) => query_id === first!.id || query_id === second!.id));
});

test('judgements of a file take the place of gold_ids; queries without one are counted', async () => {
  const qrels = join(folder, 'qrels.tsv');
  writeFileSync(qrels, 'query-id\tcorpus-id\tscore\nq-001\ts-0010\t1\nq-001\ts-0011\t0\nq-002\tmissing\t2\n');
  const { rows, report } = await mine(['--qrels', qrels]);
  assert.deepEqual(
    rows.map(({ query_id, positive_passages }) => [query_id, ...positive_passages.map(({ docid }) => docid)]),
    [['q-001', 's-0010']],
  );
  assert.equal(report.read.unjudged, questions().length - 2);
  assert.equal(report.unmined.positive_not_found, 1);
  assert.equal(report.positives.not_found, 1);
});

test('a reranker judges: thresholds and order are those of its scores, ranks those of the search', async () => {
  const checkpoint = join(folder, 'tiny-reranker');
  mkdirSync(checkpoint);
  writeCrossEncoder(checkpoint);
  const added = await runTrawl(['model', 'add', checkpoint, '--precision', 'float32', '--quiet'], { cwd: folder });
  assert.equal(added.code, 0, added.stderr);
  const reranker = join(folder, 'models', 'tiny-reranker');
  const args = ['--rerank', reranker, '--range-max', '12', '--num-negatives', '5'];
  const { rows, report } = await mine([...args, '--absolute-margin', '0.0001']);
  assert.equal(report.origin.reranker, 'tiny-reranker');
  assert.ok(report.dropped.absolute_margin > 0);
  assert.ok(rows.length > 20);
  const searched = await mine(['--range-max', '12', '--num-negatives', '12']);
  const ranks = new Map(
    searched.rows.flatMap(({ query_id, negative_passages }) =>
      negative_passages.map(({ docid, rank }) => [`${query_id} ${docid}`, rank] as const),
    ),
  );
  for (const { query_id, positive_passages, negative_passages } of rows) {
    const lowest = Math.min(...positive_passages.map(({ score }) => score));
    const scores = negative_passages.map(({ score }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a, b) => b - a),
    );
    for (const { docid, rank, score } of negative_passages) {
      assert.ok(score + 0.0001 <= lowest);
      assert.equal(rank, ranks.get(`${query_id} ${docid}`));
    }
  }
});
