import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { fileFolder, jsonOf, runTrawl } from './run-trawl.ts';

interface EvalReport {
  readonly source: string;
  readonly queries: number;
  readonly judged: number;
  readonly unjudged: number;
  readonly titleJudged: number;
  readonly answerable: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly intervals: Readonly<Record<string, { readonly low: number; readonly high: number } | null>>;
  readonly seed: number;
}

const cwd = await fileFolder();
before(async () => {
  const passages = [
    ['p0', 'The cat sat on the mat.'],
    ['p1', 'Rivers flow down to the sea.'],
    ['p2', 'The stock market crashed in 1929.'],
    ['p3', 'Bread is baked from flour and water.'],
  ];
  write(
    'corpus.jsonl',
    passages.map(([id, contents]) => ({ id, contents })),
  );
  // Each query is the text of a passage, so the first hit is known for every model.
  write('questions.jsonl', [
    { id: 'q1', question: passages[0]![1], gold_ids: ['p0'], golden_answers: ['cat'] },
    { id: 'q2', question: passages[1]![1], gold_ids: ['p1', 'none'], golden_answers: ['ocean'] },
    { id: 'q3', question: passages[2]![1], gold_ids: ['none'] },
    { id: 'q4', question: passages[3]![1] },
  ]);
  assert.equal((await runTrawl(['index', 'corpus.jsonl', '--out', 'ix', '--quiet'], { cwd })).code, 0);
});

function write(name: string, rows: readonly object[]): void {
  writeFileSync(join(cwd, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

const EVAL = ['eval', 'ix', '--queries', 'questions.jsonl'];

test('the metrics of a small case equal those computed by hand', async () => {
  const report = jsonOf<EvalReport>(await runTrawl([...EVAL, '--cutoffs', '2,1', '--json'], { cwd }));
  assert.deepEqual(
    { ...report, metrics: 0, intervals: 0 },
    {
      source: 'questions with ids, JSON lines',
      queries: 4,
      judged: 3,
      unjudged: 1,
      titleJudged: 0,
      answerable: 2,
      metrics: 0,
      intervals: 0,
      seed: 1,
    },
  );
  // q1: its only passage is first. q2: one of its two is first, the other is not in the index. q3: its only one is not either.
  const ndcgAt2OfQ2 = 1 / (1 + 1 / Math.log2(3));
  const expected = {
    'recall@1': (1 + 0.5 + 0) / 3,
    'precision@1': (1 + 1 + 0) / 3,
    'all_gold@1': 1 / 3,
    'map@1': (1 + 0.5 + 0) / 3,
    'ndcg@1': (1 + 1 + 0) / 3,
    'mrr@1': (1 + 1 + 0) / 3,
    'hit@1': (1 + 1 + 0) / 3,
    'recall@2': (1 + 0.5 + 0) / 3,
    'precision@2': (0.5 + 0.5 + 0) / 3,
    'all_gold@2': 1 / 3,
    'map@2': (1 + 0.5 + 0) / 3,
    'ndcg@2': (1 + ndcgAt2OfQ2 + 0) / 3,
    'mrr@2': (1 + 1 + 0) / 3,
    'hit@2': (1 + 1 + 0) / 3,
    mrr: (1 + 1 + 0) / 3,
    map: (1 + 0.5 + 0) / 3,
    r_precision: (1 + 0.5 + 0) / 3,
    'answer_hit@1': 0.5,
    'answer_hit@2': 0.5,
    'answer_substring@1': 0.5,
    'answer_substring@2': 0.5,
    'answer_normalised@1': 0.5,
    'answer_normalised@2': 0.5,
  };
  assert.deepEqual(Object.keys(report.metrics).sort(), Object.keys(expected).sort());
  for (const [name, value] of Object.entries(expected)) {
    assert.ok(Math.abs(report.metrics[name]! - value) < 1e-12, `${name} is ${report.metrics[name]}, not ${value}`);
  }
});

test('the text report has the same figures with four decimals', async () => {
  const { stdout } = await runTrawl([...EVAL, '--cutoffs', '1,2'], { cwd });
  const [counts, ...rows] = stdout
    .trimEnd()
    .replaceAll(/ \[[^\]]+\]/g, '')
    .split('\n');
  assert.equal(
    counts,
    'queries 4 (questions with ids, JSON lines), judged 3 (1 without judgements skipped), with answers 2',
  );
  assert.deepEqual(
    rows.map((row) => row.split(/\s+/)),
    [
      ['', '@1', '@2'],
      ['recall', '0.5000', '0.5000'],
      ['precision', '0.6667', '0.3333'],
      ['all_gold', '0.3333', '0.3333'],
      ['ndcg', '0.6667', '0.5377'],
      ['map', '0.5000', '0.5000'],
      ['mrr', '0.6667', '0.6667'],
      ['hit', '0.6667', '0.6667'],
      ['r_precision', '0.5000'],
      ['answer_hit', '0.5000', '0.5000'],
      ['answer_substring', '0.5000', '0.5000'],
      ['answer_normalised', '0.5000', '0.5000'],
    ],
  );
});

test('each mean has its interval, which repeats with its seed', async () => {
  const asked = [...EVAL, '--cutoffs', '1', '--json'];
  const report = jsonOf<EvalReport>(await runTrawl(asked, { cwd }));
  const { metrics, intervals } = report;
  assert.deepEqual(Object.keys(intervals), Object.keys(metrics));
  for (const [name, interval] of Object.entries(intervals)) {
    const { low, high } = interval!;
    assert.ok(0 <= low && low <= metrics[name]! && metrics[name]! <= high && high <= 1, name);
  }
  // Of three questions with 1, 0.5 and 0, all three draws are the first with a probability of 1 / 27, more than 2.5 %.
  assert.deepEqual(intervals['recall@1'], { low: 0, high: 1 });
  assert.deepEqual(jsonOf<EvalReport>(await runTrawl(asked, { cwd })), report);
  const { stdout } = await runTrawl([...EVAL, '--cutoffs', '1'], { cwd });
  assert.match(stdout, /^recall +0\.5000 \[0\.000, 1\.000\]$/m);
  write('one.jsonl', [{ id: 'q1', question: 'The cat sat on the mat.', gold_ids: ['p0'] }]);
  const one = await runTrawl(['eval', 'ix', '--queries', 'one.jsonl', '--cutoffs', '1'], { cwd });
  assert.match(one.stdout, /^recall +1\.0000$/m);
  // Nor has a mean of equal values.
  write('same.jsonl', [
    { id: 'q1', question: 'The cat sat on the mat.', gold_ids: ['p0'] },
    { id: 'q2', question: 'Rivers flow down to the sea.', gold_ids: ['p1'] },
  ]);
  const same = ['eval', 'ix', '--queries', 'same.jsonl', '--cutoffs', '1'];
  assert.match((await runTrawl(same, { cwd })).stdout, /^recall +1\.0000$/m);
  assert.equal(jsonOf<EvalReport>(await runTrawl([...same, '--json'], { cwd })).intervals['recall@1'], null);
});

test('questions with gold titles are judged by page, and questions with types get a table for each', async () => {
  write('titled.jsonl', [
    { id: 't0', title: 'Cats', text: 'The cat sat on the mat.' },
    { id: 't1', title: 'Cats', text: 'A cat sat down.' },
    { id: 't2', title: 'Rivers', text: 'Rivers flow down to the sea.' },
  ]);
  assert.equal((await runTrawl(['index', 'titled.jsonl', '--out', 'titled', '--quiet'], { cwd })).code, 0);
  write('pages.jsonl', [
    { id: 'a', question: 'The cat sat on the mat.', gold_titles: ['cats', 'Rivers'], type: 'bridge' },
    { id: 'b', question: 'Rivers flow down to the sea.', gold_titles: ['Rivers'], type: 'comparison' },
  ]);
  const args = ['eval', 'titled', '--queries', 'pages.jsonl', '--cutoffs', '1,3'];
  const report = jsonOf<EvalReport & { byType: Record<string, { queries: number; metrics: Record<string, number> }> }>(
    await runTrawl([...args, '--json'], { cwd }),
  );
  assert.deepEqual([report.judged, report.titleJudged], [0, 2]);
  assert.deepEqual(
    ['title_recall@1', 'title_all_gold@1', 'title_recall@3', 'title_hit@1'].map((name) => report.metrics[name]),
    [0.75, 0.5, 1, 1],
  );
  assert.deepEqual(
    ['bridge', 'comparison'].map((type) => report.byType[type]!.metrics['title_recall@1']),
    [0.5, 1],
  );
  const { stdout } = await runTrawl(args, { cwd });
  assert.match(stdout, /^queries 2 \(questions with ids, JSON lines\), judged 0, judged by page 2, with answers 0$/m);
  assert.match(stdout, /^bridge: 1 query\n +@1 +@3\ntitle_recall +0\.5000 +1\.0000$/m);
});

test('an answer counts in the text of a passage and not in its title, however the corpus has both', async () => {
  write('columns.jsonl', [{ id: 'p', title: 'The Great Gatsby', text: 'A novel by Fitzgerald.' }]);
  write('contents.jsonl', [{ id: 'p', contents: '"The Great Gatsby"\nA novel by Fitzgerald.' }]);
  write('titles.jsonl', [
    { id: 'a', question: 'A novel by Fitzgerald.', golden_answers: ['The Great Gatsby'] },
    { id: 'b', question: 'A novel by Fitzgerald.', golden_answers: ['Fitzgerald'] },
  ]);
  writeFileSync(join(cwd, 'titles.run'), 'a Q0 p 1 1 x\nb Q0 p 1 1 x\n');
  for (const name of ['columns', 'contents']) {
    assert.equal((await runTrawl(['index', `${name}.jsonl`, '--out', name, '--quiet'], { cwd })).code, 0);
    const asked = ['eval', name, '--queries', 'titles.jsonl', '--cutoffs', '1', '--compare', 'titles.run', '--json'];
    const { systems } = jsonOf<{ systems: readonly EvalReport[] }>(await runTrawl(asked, { cwd }));
    for (const { metrics } of systems)
      assert.deepEqual(
        ['answer_hit@1', 'answer_substring@1', 'answer_normalised@1'].map((metric) => metrics[metric]),
        [0.5, 0.5, 1],
        name,
      );
  }
});

test('--qrels replaces the judgements of the questions', async () => {
  writeFileSync(join(cwd, 'qrels.txt'), 'q1 0 p0 1\nq4 0 p3 2\n');
  const { judged, metrics } = jsonOf<EvalReport>(
    await runTrawl([...EVAL, '--qrels', 'qrels.txt', '--cutoffs', '1', '--json'], { cwd }),
  );
  assert.deepEqual([judged, metrics['recall@1'], metrics['ndcg@1']], [2, 1, 1]);
});

test('--qrels and --split choose the questions of a BEIR folder', async () => {
  mkdirSync(join(cwd, 'beir', 'qrels'), { recursive: true });
  write('beir/queries.jsonl', [
    { _id: 't1', text: 'The cat sat on the mat.' },
    { _id: 'd1', text: 'Rivers flow down to the sea.' },
    { _id: 'd2', text: 'Bread is baked from flour and water.' },
  ]);
  const [test, dev] = ['t1\tp0\t1', 'd1\tp1\t1\nd2\tp3\t1'].map((lines) => `query-id\tcorpus-id\tscore\n${lines}\n`);
  writeFileSync(join(cwd, 'beir/qrels/test.tsv'), test!);
  writeFileSync(join(cwd, 'beir/qrels/dev.tsv'), dev!);
  const asked = ['eval', 'ix', '--queries', 'beir', '--cutoffs', '1'];
  for (const options of [
    ['--qrels', 'beir/qrels/dev.tsv'],
    ['--split', 'dev'],
  ]) {
    const result = await runTrawl([...asked, ...options, '--json'], { cwd });
    const { queries, judged, source, metrics } = jsonOf<EvalReport>(result);
    assert.deepEqual([queries, judged, metrics['recall@1']], [2, 2, 1]);
    assert.match(source, /^BEIR, judgements of (beir\/)?qrels\/dev\.tsv$/);
    assert.equal(result.stderr, '');
  }
  assert.equal(jsonOf<EvalReport>(await runTrawl([...asked, '--json'], { cwd })).queries, 1);
  const both = await runTrawl([...asked, '--split', 'dev', '--qrels', 'beir/qrels/dev.tsv'], { cwd });
  assert.equal(both.code, EXIT.usage);
  assert.match(both.stderr, /so --split dev has no effect/);
});

test('questions whose answer is yes or no are counted, and not measured by it', async () => {
  write('yes.jsonl', [
    { id: 'a', question: 'The cat sat on the mat.', golden_answers: ['yes'] },
    { id: 'b', question: 'Rivers flow down to the sea.', golden_answers: ['sea'] },
  ]);
  const result = await runTrawl(['eval', 'ix', '--queries', 'yes.jsonl', '--cutoffs', '1', '--json'], { cwd });
  const { answerable, metrics } = jsonOf<EvalReport>(result);
  assert.deepEqual([answerable, metrics['answer_hit@1']], [1, 1]);
  assert.match(result.stderr, /1 of 2 questions have only yes, no or another label as answers, such as "a"/);
});

test('claims of FEVER, whose answer is a class, are counted, too', async () => {
  const output = (answer: string) => [{ answer, provenance: [{ title: 'Cats' }] }];
  write('fever.jsonl', [
    { id: 'a', input: 'The cat sat on the mat.', output: output('SUPPORTS') },
    { id: 'b', input: 'Rivers flow down to the sea.', output: output('REFUTES') },
  ]);
  const result = await runTrawl(['eval', 'ix', '--queries', 'fever.jsonl', '--cutoffs', '1', '--json'], { cwd });
  const { answerable, metrics } = JSON.parse(result.stdout) as EvalReport;
  assert.deepEqual([answerable, metrics['answer_hit@1']], [0, undefined]);
  assert.match(result.stderr, /2 of 2 questions have only yes, no or another label as answers, such as "a"/);
});

test('gold titles that no search finds are named as such, also if the passages have none', async () => {
  write('untitled.jsonl', [{ id: 'a', question: 'The cat sat on the mat.', gold_titles: ['Cats'] }]);
  const { stderr } = await runTrawl(['eval', 'ix', '--queries', 'untitled.jsonl', '--cutoffs', '1'], { cwd });
  assert.match(stderr, /No search found a passage with a gold title/);
  assert.doesNotMatch(stderr, /No search found a judged passage/);
});

test('a file that would be written twice, or read and written, is refused before the index is opened', async () => {
  const asked = ['eval', 'nowhere', '--queries', 'questions.jsonl'];
  for (const [options, message] of [
    [['--run', 'same', '--per-question', './same'], /--per-question \.\/same is the same file as --run same\./],
    [
      ['--compare', 'other', '--html', 'same', '--per-question', 'same'],
      /--per-question same is the same file as --html same\. Choose another path\./,
    ],
    [['--per-question', 'questions.jsonl'], /is --queries questions\.jsonl, which is read\./],
  ] as const) {
    const { code, stderr } = await runTrawl([...asked, ...options], { cwd });
    assert.equal(code, EXIT.usage, stderr);
    assert.match(stderr, message);
  }
});

test('judgements of queries that are not asked are counted', async () => {
  writeFileSync(join(cwd, 'more.txt'), 'q1 0 p0 1\nelsewhere 0 p3 2\n');
  const { code, stderr } = await runTrawl([...EVAL, '--qrels', 'more.txt', '--cutoffs', '1'], { cwd });
  assert.equal(code, 0);
  assert.match(stderr, /1 of 2 judged queries are not in questions\.jsonl, such as "elsewhere"/);
});

test('--per-question writes the metrics of each question, whose means are those of the report', async () => {
  const { metrics } = jsonOf<EvalReport>(
    await runTrawl([...EVAL, '--cutoffs', '1', '--per-question', 'each.jsonl', '--json'], { cwd }),
  );
  const linesOf = (name: string) =>
    readFileSync(join(cwd, name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; system?: string; metrics: Record<string, number> });
  const lines = linesOf('each.jsonl');
  assert.deepEqual(
    lines.map((line) => [line.id, line.system, line.metrics['recall@1']]),
    [
      ['q1', undefined, 1],
      ['q2', undefined, 0.5],
      ['q3', undefined, 0],
      ['q4', undefined, undefined],
    ],
  );
  for (const [name, mean] of Object.entries(metrics)) {
    const values = lines.flatMap((line) => (name in line.metrics ? [line.metrics[name]!] : []));
    assert.equal(values.reduce((sum, value) => sum + value, 0) / values.length, mean, name);
  }
  writeFileSync(join(cwd, 'each.run'), 'q1 Q0 p0 1 9 x\n');
  await runTrawl([...EVAL, '--cutoffs', '1', '--per-question', 'each.jsonl', '--compare', 'r=each.run'], { cwd });
  assert.deepEqual(
    linesOf('each.jsonl').map((line) => `${line.system} ${line.id} ${line.metrics['hit@1']}`),
    ['ix q1 1', 'ix q2 1', 'ix q3 0', 'ix q4 undefined', 'r q1 1', 'r q2 0', 'r q3 0', 'r q4 undefined'],
  );
});

test('--run writes a TREC run: six fields, ranks from 1, scores that never increase', async () => {
  const { code } = await runTrawl([...EVAL, '--cutoffs', '3', '--run', 'run.txt', '--tag', 'mine', '--quiet'], { cwd });
  assert.equal(code, 0);
  const rows = readFileSync(join(cwd, 'run.txt'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '));
  assert.equal(rows.length, 4 * 3);
  for (const [i, row] of rows.entries()) {
    const [query, q0, passage, rank, score, tag] = row;
    assert.equal(row.length, 6);
    assert.deepEqual([query, q0, rank, tag], [`q${Math.floor(i / 3) + 1}`, 'Q0', String((i % 3) + 1), 'mine']);
    assert.match(passage!, /^p[0-3]$/);
    assert.ok(rank === '1' || Number(score) <= Number(rows[i - 1]![4]));
  }
  assert.deepEqual(
    rows.filter(([, , , rank]) => rank === '1').map(([, , passage]) => passage),
    ['p0', 'p1', 'p2', 'p3'],
  );
});

test('an evaluation of questions without judgements and answers fails and says why', async () => {
  write('bare.jsonl', [{ id: 'a', question: 'anything' }]);
  const { code, stderr } = await runTrawl(['eval', 'ix', '--queries', 'bare.jsonl'], { cwd });
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /No question has judgements or answers, so nothing was measured/);
});

test('a passage without an id is not mistaken for one with an id, and judgements that match no passage cause a warning', async () => {
  write('ids.jsonl', [
    { id: '7', contents: 'seven' },
    { contents: 'no id here' },
    { id: '1', contents: 'the real one' },
    { _id: 'beir', contents: 'an id as BEIR has it' },
  ]);
  const built = await runTrawl(['index', 'ids.jsonl', '--out', 'ids'], { cwd });
  assert.match(built.stderr, /1 passage without an id/);
  write('q.jsonl', [{ id: 'q1', question: 'no id here', gold_ids: ['1'] }]);
  const first = await runTrawl(['eval', 'ids', '--queries', 'q.jsonl', '--cutoffs', '1', '--json'], { cwd });
  assert.equal((JSON.parse(first.stdout) as { metrics: Record<string, number> }).metrics['recall@1'], 0);
  assert.match(first.stderr, /No search found a judged passage/);
  write('q2.jsonl', [{ id: 'q1', question: 'an id as BEIR has it', gold_ids: ['beir'] }]);
  const beir = await runTrawl(['eval', 'ids', '--queries', 'q2.jsonl', '--cutoffs', '1', '--json'], { cwd });
  assert.equal((JSON.parse(beir.stdout) as { metrics: Record<string, number> }).metrics['recall@1'], 1);
});

test("BEIR's files of questions and judgements are read", async () => {
  write('beir.jsonl', [{ _id: 'b1', text: 'Rivers flow down to the sea.', metadata: {} }]);
  writeFileSync(join(cwd, 'beir.tsv'), 'query-id\tcorpus-id\tscore\nb1\tp1\t1\n');
  const asked = ['eval', 'ix', '--queries', 'beir.jsonl', '--qrels', 'beir.tsv', '--cutoffs', '1', '--json'];
  const { judged, metrics } = jsonOf<EvalReport>(await runTrawl(asked, { cwd }));
  assert.deepEqual([judged, metrics['recall@1']], [1, 1]);
});

test('in a folder of BEIR, the passage with the id of the question does not count, unless it is asked for', async () => {
  const texts = [
    'The cat sat on the mat.',
    'A cat sat on a mat.',
    'Rivers flow down to the sea.',
    'A river flows to a sea.',
  ];
  write(
    'argu.jsonl',
    texts.map((text, i) => ({ _id: `a${i}`, title: '', text })),
  );
  mkdirSync(join(cwd, 'argu', 'qrels'), { recursive: true });
  write('argu/queries.jsonl', [
    { _id: 'a0', text: texts[0] },
    { _id: 'a2', text: texts[2] },
  ]);
  writeFileSync(join(cwd, 'argu', 'qrels', 'test.tsv'), 'query-id\tcorpus-id\tscore\na0\ta1\t1\na2\ta3\t1\n');
  writeFileSync(join(cwd, 'argu.run'), 'a0 Q0 a0 1 9 x\na0 Q0 a1 2 8 x\na2 Q0 a3 1 9 x\na2 Q0 a2 2 8 x\n');
  assert.equal((await runTrawl(['index', 'argu.jsonl', '--out', 'argu-ix', '--quiet'], { cwd })).code, 0);
  const recall = async (...more: string[]) => {
    const asked = ['--queries', 'argu', '--cutoffs', '1', '--json'];
    const ended = await runTrawl(['eval', ...more.slice(0, 1), ...asked, ...more.slice(1)], { cwd });
    return { ...ended, recall: jsonOf<EvalReport>(ended).metrics['recall@1'] };
  };
  const dropped = await recall('argu-ix', '--run', 'dropped.run');
  assert.equal(dropped.recall, 1);
  assert.match(
    dropped.stderr,
    /argu-ix: 2 questions of 2 found the passage with the question's own id, which does not count \(--ignore-identical-ids\)/,
  );
  assert.match(readFileSync(join(cwd, 'dropped.run'), 'utf8'), /^a0 Q0 a1 1 \S+ trawl\na2 Q0 a3 1 \S+ trawl\n$/);
  const run = await recall('argu.run');
  assert.equal(run.recall, 1);
  assert.match(run.stderr, /2 questions of 2 found/);
  assert.doesNotMatch(run.stderr, /fewer than/);
  assert.equal((await recall('argu.run', '--ignore-identical-ids', 'no')).recall, 0.5);
  const asFile = ['--queries', 'argu/queries.jsonl', '--qrels', 'argu/qrels/test.tsv', '--cutoffs', '1', '--json'];
  const recallOf = async (...more: string[]) =>
    jsonOf<EvalReport>(await runTrawl(['eval', 'argu.run', ...asFile, ...more], { cwd })).metrics['recall@1'];
  assert.deepEqual([await recallOf(), await recallOf('--ignore-identical-ids', 'yes')], [0.5, 1]);
});

test('an id with white space is refused before a TREC run is written, and accepted without --run', async () => {
  write('spaced.jsonl', [{ id: 'q 1', question: 'The cat sat on the mat.', gold_ids: ['p0'] }]);
  const spaced = ['--queries', 'spaced.jsonl', '--cutoffs', '1', '--json'];
  // The ids are checked before the index is opened: it does not exist.
  const query = await runTrawl(['eval', 'nowhere', ...spaced, '--run', 'spaced.run'], { cwd });
  assert.equal(query.code, EXIT.usage);
  assert.match(query.stderr, /query id \\"q 1\\" cannot be written to a TREC run/);
  const tag = await runTrawl(['eval', 'nowhere', '--queries', 'questions.jsonl', '--run', 'x', '--tag', 'my run'], {
    cwd,
  });
  assert.equal(tag.code, EXIT.usage);
  assert.match(tag.stderr, /tag "my run" cannot be written/);
  assert.equal(jsonOf<EvalReport>(await runTrawl(['eval', 'ix', ...spaced], { cwd })).metrics['recall@1'], 1);

  write('wide.jsonl', [{ id: 'p 0', contents: 'The cat sat on the mat.' }]);
  assert.equal((await runTrawl(['index', 'wide.jsonl', '--out', 'wide', '--quiet'], { cwd })).code, 0);
  const passage = await runTrawl(['eval', 'wide', '--queries', 'questions.jsonl', '--run', 'wide.run'], { cwd });
  assert.equal(passage.code, EXIT.usage);
  assert.match(passage.stderr, /passage id "p 0" cannot be written to a TREC run/);
  assert.ok(!existsSync(join(cwd, 'spaced.run')) && !existsSync(join(cwd, 'wide.run')));
});

test('a file that cannot be read or written is named in the error', async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['eval', 'ix', '--queries', 'none.jsonl'], /Cannot read none\.jsonl.*\[CORPUS_NOT_FOUND\]/],
    [
      ['eval', 'ix', '--queries', 'corpus.jsonl'],
      /The first entry of corpus\.jsonl has the columns id, contents.*\[CORPUS_FORMAT_UNKNOWN\]/,
    ],
    [[...EVAL, '--qrels', 'questions.jsonl'], /questions\.jsonl:1: .*\[CORPUS_BAD_LINE\]/],
    [[...EVAL, '--run', 'none/run.txt'], /none\/run\.txt cannot be written.*\[OUTPUT_NOT_WRITABLE\]/],
    ...(existsSync('/dev/full')
      ? [[[...EVAL, '--run', '/dev/full'], /\/dev\/full: no space left.*\[DISK_FULL\]/] as [string[], RegExp]]
      : []),
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await runTrawl(args, { cwd });
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
});
