import assert from 'node:assert/strict';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { MiningSummary } from '../../mining/mine-negatives.ts';
import { linesOf, PLANTED, QUESTIONS, questions, SUB_QUERIES, writePlantedCorpus } from '../mining/mining-corpus.ts';
import { writeCrossEncoder } from '../rerank/tiny-cross-encoder.ts';
import { type Ended, fileFolder, jsonOf, runTrawl } from './run-trawl.ts';

const folder = await fileFolder();
const index = join(folder, 'planted');
let count = 0;

before(async () => {
  const corpus = writePlantedCorpus(folder);
  const { code, stderr } = await runTrawl([
    'index',
    corpus,
    '--out',
    index,
    '--model',
    'token-average-256',
    '--bm25',
    '--quiet',
  ]);
  assert.equal(code, 0, stderr);
});

interface TevatronPassage {
  readonly docid: string;
  readonly text: string;
  readonly rank: number;
  readonly score: number;
}

interface TevatronRow {
  readonly query_id: string;
  readonly query: string;
  readonly positive_passages: readonly TevatronPassage[];
  readonly negative_passages: readonly TevatronPassage[];
  readonly group: string;
  readonly generation: string;
  readonly model: string;
}

interface Mined {
  readonly out: string;
  readonly rows: readonly TevatronRow[];
  readonly report: MiningSummary;
}

async function mine(args: readonly string[] = [], queries = QUESTIONS): Promise<Mined> {
  const out = join(folder, `mined-${count++}.jsonl`);
  const run = ['mine', index, '--queries', queries, '--out', out, '--format', 'tevatron', ...args, '--json', '--quiet'];
  const report = jsonOf<MiningSummary>(await runTrawl(run));
  return { out, rows: linesOf<TevatronRow>(out), report };
}

function mineRefused(...args: readonly string[]): Promise<Ended> {
  return runTrawl(['mine', index, ...args, '--quiet']);
}

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
  const { rows, report } = await mine(['--range-max', '300', '--num-negatives', '300'], SUB_QUERIES);
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
  const groups = new Set(rows.map(({ group }) => group));
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

test('a file of origins has a line for each row of sentence-transformers; n-tuple leaves out what is too short', async () => {
  const out = join(folder, 'tuples.jsonl');
  const args = ['--format', 'n-tuple', '--num-negatives', '3', '--absolute-margin', '0.1', '--output-scores'];
  const run = ['mine', index, '--queries', QUESTIONS, '--out', out, ...args, '--json', '--quiet'];
  const report = jsonOf<MiningSummary>(await runTrawl(run));
  const rows = linesOf<Record<string, unknown>>(out);
  const origins = linesOf<{ query_id: string; positives: object[]; negatives: object[]; generation: string }>(
    `${out}.origins.jsonl`,
  );
  assert.ok(rows.length > 0);
  assert.equal(origins.length, rows.length);
  for (const row of rows) {
    assert.deepEqual(Object.keys(row), ['anchor', 'positive', 'negative_1', 'negative_2', 'negative_3', 'scores']);
  }
  for (const { negatives, positives, generation } of origins) {
    assert.deepEqual([positives.length, negatives.length, generation], [1, 3, report.origin.generation]);
  }
  assert.ok(report.unmined.too_few_negatives > 0);
});

test('the file of dpr is one JSON array, an empty one too', async () => {
  const out = join(folder, 'dpr.json');
  const run = ['mine', index, '--queries', QUESTIONS, '--format', 'dpr', '--quiet', '--out'];
  assert.equal((await runTrawl([...run, out])).code, 0);
  const rows = JSON.parse(readFileSync(out, 'utf8')) as { question: string; hard_negative_ctxs: object[] }[];
  assert.ok(rows.length > 100 && rows.every(({ hard_negative_ctxs }) => hard_negative_ctxs.length > 0));
  const empty = join(folder, 'empty.json');
  const { code, stderr } = await runTrawl([
    'mine',
    index,
    '--queries',
    QUESTIONS,
    '--format',
    'dpr',
    '--out',
    empty,
    '--max-score',
    '-2',
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /No query got a row/);
  assert.equal(readFileSync(empty, 'utf8'), '[]\n');
});

test('rows have the generation of the index and the checksum of its encoder', async () => {
  const { rows } = await mine();
  const inspected = jsonOf<{ generation: string; model: { sha256: string } }>(
    await runTrawl(['inspect', index, '--json']),
  );
  const { generation, model } = inspected;
  for (const row of rows) assert.deepEqual([row.generation, row.model], [generation, model.sha256]);
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

test('without --json, a table says what was found and dropped', async () => {
  const out = join(folder, 'table.jsonl');
  const { stdout, code } = await runTrawl([
    'mine',
    index,
    '--queries',
    QUESTIONS,
    '--out',
    out,
    '--format',
    'triplet',
    '--quiet',
  ]);
  assert.equal(code, 0);
  assert.match(stdout, /rows for [\d,]+ of 147 queries/);
  assert.match(stdout, /^ {2}dropped: positive +\d+$/m);
  assert.match(stdout, /^Ranks of the negatives$/m);
  assert.match(stdout, /^Scores of the positives$/m);
  assert.ok(stdout.endsWith(`Examples: ${out}.report.json\n`));
});

test('an existing file is not replaced without --restart or its former name --overwrite, and nothing is left beside the finished files', async () => {
  const { out } = await mine();
  const before = readFileSync(out);
  const run = ['--queries', SUB_QUERIES, '--out', out, '--format', 'tevatron'];
  const { code, stderr } = await mineRefused(...run);
  assert.equal(code, 1);
  assert.match(stderr, /already exists.*--restart\. \[OUTPUT_EXISTS\]/);
  assert.deepEqual(readFileSync(out), before);
  assert.equal((await mineRefused(...run, '--overwrite')).code, 0);
  assert.equal((await mineRefused(...run, '--restart')).code, 0);
  assert.notDeepEqual(readFileSync(out), before);
  const beside = readdirSync(folder).map((name) => join(folder, name));
  assert.deepEqual(beside.filter((path) => path.startsWith(out)).sort(), [out, `${out}.report.json`]);
});

interface RecordOptions {
  readonly query: string;
  readonly question?: string;
  readonly questionId?: string;
  readonly dataset?: string;
  readonly generation?: string;
  readonly split?: string;
  readonly trajectory?: string;
  readonly turn?: number;
  readonly error?: string;
}

function writeRecords(name: string, generation: string, records: readonly RecordOptions[]): string {
  const path = join(folder, name);
  const lines = records.map((record, place) => ({
    time: '2026-11-20T12:00:00.000Z',
    requestId: `r${place}`,
    dialect: 'search-r1',
    index: 'planted',
    generation,
    place: 0,
    k: 3,
    ...record,
    rows: [],
    scores: [],
    ids: [],
  }));
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return path;
}

test('recorded queries have the positives of their question; rollouts of a question are siblings', async () => {
  const { report } = await mine();
  const { generation } = report.origin;
  const [first, second] = questions();
  const records = writeRecords('record.jsonl', generation, [
    { question: first!.question, query: 'Brooklyn Bridge engineer', trajectory: 'a', turn: 1, split: 'train' },
    { question: first!.question, query: 'Brooklyn Bridge engineer', trajectory: 'b', turn: 2, split: 'train' },
    { query: `${first!.question} [SEP] who designed it`, split: 'train' },
    { question: 'An unknown question?', query: 'x', split: 'train' },
    { question: second!.question, query: 'held out', split: 'validation' },
    { question: first!.question, query: 'broken', split: 'train', error: 'EMPTY_QUERY' },
  ]);
  const mined = await mine(['--records', records, '--split', 'train']);
  assert.deepEqual(mined.report.read, { read: 6, excluded: 0, unjudged: 1, failed: 1, other_split: 1, merged: 1 });
  assert.deepEqual(
    mined.rows.map(({ query_id, query }) => [query_id, query]),
    [
      [first!.id, `${first!.question} [SEP] Brooklyn Bridge engineer`],
      [first!.id, `${first!.question} [SEP] who designed it`],
    ],
  );
  assert.equal(new Set(mined.rows.map(({ group }) => group)).size, 1);
  for (const row of mined.rows)
    assert.deepEqual(
      row.positive_passages.map(({ docid }) => docid),
      first!.gold_ids,
    );
});

test('a recorded query belongs to the question with its id, else to the one with its text', async () => {
  const { report } = await mine();
  const [first, second] = questions();
  const records = writeRecords('ids.jsonl', report.origin.generation, [
    { query: 'the engineer', questionId: first!.id },
    {
      query: 'its length',
      question: second!.question.replace('?', ' !'),
      questionId: second!.id,
      dataset: 'nq',
    },
    // Neither question nor data set say that it is the question with this id.
    { query: 'its length', question: `Answer the question: ${second!.question}`, questionId: second!.id },
    { query: 'another id', question: first!.question, questionId: 'unknown' },
    { query: 'no such question', questionId: 'unknown' },
  ]);
  const { rows, report: mined } = await mine(['--records', records, '--range-max', '50']);
  assert.deepEqual([mined.read.read, mined.read.unjudged], [5, 2]);
  assert.deepEqual(
    rows.map(({ query, positive_passages }) => [query, positive_passages.map(({ docid }) => docid)]),
    [
      [`${first!.question} [SEP] the engineer`, first!.gold_ids],
      [`${second!.question} [SEP] its length`, second!.gold_ids],
      [`${first!.question} [SEP] another id`, first!.gold_ids],
    ],
  );
  assert.equal(rows[0]!.group, rows[2]!.group);
});

test('records of another generation are refused unless they are allowed', async () => {
  const [first] = questions();
  const records = writeRecords('other.jsonl', 'an-older-generation', [{ question: first!.question, query: 'bridge' }]);
  const out = join(folder, 'other-rows.jsonl');
  const run = ['--queries', QUESTIONS, '--records', records, '--out', out, '--format', 'tevatron'];
  const { code, stderr } = await mineRefused(...run);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /other\.jsonl:1: the query was asked in index generation an-older-generation.*--any-generation/s,
  );
  assert.equal(existsSync(out), false);
  assert.equal((await mineRefused(...run, '--any-generation')).code, 0);
  assert.equal(linesOf(out).length, 1);
});

test('files that are made of records are as private as these', async () => {
  const { report } = await mine();
  const [first] = questions();
  const records = writeRecords('private.jsonl', report.origin.generation, [{ query: first!.question }]);
  chmodSync(records, 0o600);
  const out = join(folder, 'private-rows.jsonl');
  const run = ['--queries', QUESTIONS, '--records', records, '--out', out, '--format', 'triplet'];
  const { code, stderr } = await mineRefused(...run);
  assert.equal(code, 0, stderr);
  for (const path of [out, `${out}.origins.jsonl`, `${out}.report.json`]) {
    assert.equal(statSync(path).mode & 0o777, 0o600, path);
  }
});

test('an output that is one of the inputs is refused, with --restart too, and stays as it is', async () => {
  const queries = join(folder, 'same.jsonl');
  copyFileSync(QUESTIONS, queries);
  const linked = join(folder, 'linked.jsonl');
  linkSync(queries, linked);
  const records = writeRecords('same-records.jsonl', 'g', [{ query: questions()[0]!.question }]);
  const beside = join(folder, 'beside.jsonl');
  const origins = `${beside}.origins.jsonl`;
  copyFileSync(QUESTIONS, origins);
  for (const [read, out, args] of [
    [queries, queries, ['--queries', queries]],
    [queries, linked, ['--queries', queries]],
    [queries, queries, ['--queries', QUESTIONS, '--exclude-questions', queries]],
    [records, records, ['--queries', QUESTIONS, '--records', records, '--any-generation']],
    [origins, beside, ['--queries', origins]],
  ] as const) {
    const before = readFileSync(read);
    for (const restart of [[], ['--restart']]) {
      const { code, stderr } = await mineRefused(...args, '--out', out, '--format', 'triplet', ...restart);
      assert.equal(code, 2, stderr);
      assert.ok(
        stderr.includes(`--out ${out} would replace `) && stderr.includes(`which is ${read} and is read`),
        stderr,
      );
      assert.deepEqual(readFileSync(read), before);
      assert.equal(existsSync(`${out}.work`), false);
    }
  }
});

const REFUSED: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [['--out', 'x', '--format', 'tevatron'], /--queries is missing/],
  [['--queries', QUESTIONS, '--format', 'tevatron'], /--out is missing/],
  [['--queries', QUESTIONS, '--out', 'x'], /--format is missing: triplet, n-tuple/],
  [['--queries', QUESTIONS, '--out', 'x', '--format', 'colbert'], /format.*colbert/],
  [['--range-min', '9', '--range-max', '8'], /--range-min 9 is above --range-max 8/],
  [['--range-min', '8', '--range-max', '9', '--num-negatives', '3'], /more than the 2 ranks/],
  [['--min-negatives', '4', '--num-negatives', '3'], /--min-negatives 4 is above --num-negatives 3/],
  [['--min-negatives', '0'], /--min-negatives 0 needs --format labeled-pair/],
  [['--max-score', 'high'], /--max-score is "high"; expected a number/],
  [['--absolute-margin', '-1'], /--absolute-margin is "-1"/],
  [['--near-duplicate', '0'], /--near-duplicate is 0/],
  [['--near-duplicate', '1.5'], /--near-duplicate is "1.5"/],
  [['--sampling-strategy', 'best'], /sampling-strategy.*best/],
  [['--also-bm25', '--mode', 'bm25'], /--also-bm25 has no effect with --mode bm25/],
  [['--split', 'train'], /--split has no effect without --records/],
  [['--any-generation'], /--any-generation has no effect without --records/],
  [['--k1', '1.2'], /--k1 has no effect without --mode bm25/],
  [['--rerank-threads', '2'], /--rerank-threads has no effect without --rerank/],
];

for (const [args, message] of REFUSED) {
  test(`trawl mine ${args.map((arg) => (arg === QUESTIONS ? 'QUESTIONS' : arg)).join(' ')} is refused`, async () => {
    const out = join(folder, 'refused.jsonl');
    const whole = args.some((arg) => arg === '--format' || arg === '--queries');
    const rest = whole ? [] : ['--queries', QUESTIONS, '--out', out, '--format', 'tevatron'];
    const { code, stderr } = await mineRefused(...rest, ...args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
    assert.equal(existsSync(out), false);
  });
}

test('a missing or damaged file of queries is refused, and leaves nothing behind', async () => {
  const out = join(folder, 'damaged.jsonl');
  const damaged = join(folder, 'damaged-questions.jsonl');
  writeFileSync(damaged, `${readFileSync(QUESTIONS, 'utf8')}{"id": "x"}\n`);
  for (const [queries, message] of [
    [join(folder, 'nowhere.jsonl'), /is not a file/],
    [damaged, /damaged-questions\.jsonl:148: "question" must be a string/],
  ] as const) {
    const { code, stderr } = await mineRefused('--queries', queries, '--out', out, '--format', 'dpr');
    assert.equal(code, 1);
    assert.match(stderr, message);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('damaged.jsonl')),
      [],
    );
  }
  const { stderr } = await mineRefused('--queries', QUESTIONS, '--out', join(folder, 'no', 'x'), '--format', 'dpr');
  assert.match(stderr, /its folder does not exist\. \[OUTPUT_NOT_WRITABLE\]/);
});
