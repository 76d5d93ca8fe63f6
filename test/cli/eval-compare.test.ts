import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { ComparisonReport } from '../../evaluation/systems/comparison.ts';
import { bertCheckpoint } from '../training/iteration/checkpoints.ts';
import { fileFolder, jsonOf, runTrawl } from './run-trawl.ts';

const cwd = await fileFolder();

function write(name: string, rows: readonly object[]): void {
  writeFileSync(join(cwd, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

const TEXTS = [
  ['Cats', 'The cat sat on the mat.'],
  ['Rivers', 'Rivers flow down to the sea.'],
  ['Markets', 'The stock market crashed in 1929.'],
  ['Bread', 'Bread is baked from flour and water.'],
] as const;

before(async () => {
  write(
    'corpus.jsonl',
    TEXTS.map(([title, text], i) => ({ id: `p${i}`, title, text })),
  );
  // Only p0 and p1 are the nearest of their questions: the others ask for another passage.
  write('questions.jsonl', [
    { id: 'q0', question: TEXTS[0][1], gold_ids: ['p0'], golden_answers: ['mat'] },
    { id: 'q1', question: TEXTS[1][1], gold_ids: ['p1'], gold_titles: ['Rivers'] },
    { id: 'q2', question: TEXTS[2][1], gold_ids: ['p3'] },
  ]);
  writeFileSync(join(cwd, 'run.txt'), 'q0 Q0 p3 1 9 x\nq1 Q0 p1 1 9 x\nq2 Q0 p2 2 8 x\nq2 Q0 p3 1 9 x\n');
  const built = await runTrawl(
    ['index', 'corpus.jsonl', '--out', 'ix', '--model', 'token-average-256', '--bm25', '--quiet'],
    { cwd },
  );
  assert.equal(built.code, 0, built.stderr);
});

const EVAL = ['eval', 'ix', '--queries', 'questions.jsonl', '--cutoffs', '1'];
const evaluate = (...args: string[]) => runTrawl([...EVAL, ...args], { cwd });

test('an index, the same index in another mode and a run file are compared with the first', async () => {
  const report = jsonOf<ComparisonReport>(
    await evaluate('--compare', '?mode=bm25', '--compare', 'mine=run.txt', '--json'),
  );
  assert.deepEqual(
    report.systems.map(({ name, what, metrics }) => [name, what, metrics['recall@1']]),
    [
      ['ix', 'index ix', 2 / 3],
      ['?mode=bm25', 'index ix, mode=bm25', 2 / 3],
      ['mine', 'run run.txt', 2 / 3],
    ],
  );
  const [bm25, mine] = report.comparisons;
  assert.deepEqual([bm25!.first, bm25!.second, mine!.first, mine!.second], ['ix', '?mode=bm25', 'ix', 'mine']);
  assert.deepEqual(bm25!.changed?.most, []);
  const { difference, p, better, worse, queries } = mine!.metrics['recall@1']!;
  assert.deepEqual({ difference, p, better, worse, queries }, { difference: 0, p: 1, better: 1, worse: 1, queries: 3 });
  // The texts of the run's passages come from the index.
  assert.equal(report.systems[2]!.metrics['answer_hit@1'], 0);
  assert.equal(report.systems[2]!.metrics['title_recall@1'], 1);
  const [changed] = mine!.changed!.most;
  assert.deepEqual(changed, {
    id: 'q0',
    question: TEXTS[0][1],
    query: null,
    goldIds: ['p0'],
    goldTitles: [],
    goldenAnswers: ['mat'],
    first: {
      value: 1,
      passages: [
        { id: 'p0', title: 'Cats', score: changed!.first.passages[0]!.score, relevant: true, text: TEXTS[0][1] },
      ],
    },
    second: { value: 0, passages: [{ id: 'p3', title: 'Bread', score: 9, relevant: false, text: TEXTS[3][1] }] },
  });
});

test('the text report has a table of all systems, one of each difference, and the changed questions side by side', async () => {
  const { stdout } = await evaluate('--compare', 'mine=run.txt');
  assert.match(stdout, /^queries 3 \(questions with ids, JSON lines\), judged 3, judged by page 1, with answers 1$/m);
  assert.match(stdout, /^ +ix +mine\nrecall@1 +0\.6667 +0\.6667$/m);
  assert.match(stdout, /^mine against ix\n +difference +95 % interval +p +better +worse +questions$/m);
  assert.match(stdout, /^recall@1 +0\.0000 +-1\.0000 … \+1\.0000 +1\.000 +1 +1 +3$/m);
  assert.match(stdout, /^recall@1: 1 question better, 1 worse, 1 unchanged$/m);
  assert.match(stdout, /^q0 {2}The cat sat on the mat\.\n {2}relevant: p0\n {2}answers: mat$/m);
  assert.match(stdout, /^ {3}1 {2}\* p0 {2}Cats: The cat sat on the mat\. +p3 {2}Bread: Bread is baked/m);
});

test('the page has the numbers and passages of the report, loads nothing and escapes texts', async () => {
  write('evil.jsonl', [{ id: '<b>', question: '<script>alert(1)</script> cat mat', gold_ids: ['p0'] }]);
  writeFileSync(join(cwd, 'evil.txt'), '<b> Q0 p<i>3 1 9 x\n');
  const args = ['eval', 'ix', '--queries', 'evil.jsonl', '--compare', '<u>=evil.txt', '--html', 'page.html'];
  const { code, stderr } = await runTrawl(args, { cwd });
  // No passage of the run is judged.
  assert.equal(code, 3, stderr);
  assert.match(stderr, /page\.html: the report as a page/);
  const page = readFileSync(join(cwd, 'page.html'), 'utf8');
  assert.match(page, /^<!doctype html>/);
  assert.match(page, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
  assert.match(page, /<strong>p&lt;i&gt;3<\/strong>/);
  assert.match(page, /class="relevant"><strong>Cats/);
  assert.doesNotMatch(page, /<script|<b>|<u>|<i>|https?:|src=/);
});

test('--by chooses the changed questions by another metric, and --examples how many', async () => {
  const asked = ['--compare', 'mine=run.txt', '--json'];
  const one = jsonOf<ComparisonReport>(await evaluate(...asked, '--examples', '1', '--by', 'ndcg@1'));
  const changed = one.comparisons[0]!.changed!;
  assert.deepEqual([changed.metric, changed.better, changed.worse, changed.most.length], ['ndcg@1', 1, 1, 1]);
  const wrong = await evaluate(...asked, '--by', 'ndcg@7');
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--by is \\"ndcg@7\\"; expected a metric of these questions and cutoffs: recall@1, /);
  // It is found before a system is searched: the index does not exist.
  for (const by of ['ndcg@7', 'constructor']) {
    const early = await runTrawl(['eval', 'nowhere', ...EVAL.slice(2), ...asked, '--by', by], { cwd });
    assert.equal(early.code, 2, early.stderr);
  }
  const lacking = await runTrawl(
    ['eval', 'run.txt', ...EVAL.slice(2), '--compare', 'again=./run.txt', '--by', 'answer_hit@1'],
    { cwd },
  );
  assert.equal(lacking.code, 2);
  assert.match(lacking.stderr, /--by is "answer_hit@1"; expected a metric that both systems have: recall@1, /);
});

test('an index is compared with itself by the precision of the queries', async () => {
  const checkpoint = bertCheckpoint(cwd, 'tiny');
  const added = await runTrawl(['model', 'add', checkpoint, '--precision', 'float32,int8', '--quiet'], { cwd });
  assert.equal(added.code, 0, added.stderr);
  const built = await runTrawl(['index', 'corpus.jsonl', '--out', 'tiny-ix', '--model', 'tiny', '--quiet'], { cwd });
  assert.equal(built.code, 0, built.stderr);
  const asked = ['eval', 'tiny-ix', '--queries', 'questions.jsonl', '--cutoffs', '1'];
  const report = jsonOf<ComparisonReport>(
    await runTrawl([...asked, '--compare', '?precision=int8', '--json', '--quiet'], { cwd }),
  );
  assert.deepEqual(
    report.systems.map(({ name, what }) => [name, what]),
    [
      ['tiny-ix', 'index tiny-ix'],
      ['?precision=int8', 'index tiny-ix, precision=int8'],
    ],
  );
  const { queries } = report.comparisons[0]!.metrics['recall@1']!;
  assert.equal(queries, 3);
  // A system is opened with its own precision: one that the model lacks is refused.
  const lacking = await runTrawl([...asked, '--compare', '?precision=float16'], { cwd });
  assert.notEqual(lacking.code, 0);
  assert.match(lacking.stderr, /float16/);
});

test('a run file alone is measured by its ids, and says what it lacks', async () => {
  const { code, stdout, stderr } = await runTrawl(['eval', 'run.txt', ...EVAL.slice(2), '--json'], { cwd });
  assert.equal(code, 0);
  const { metrics } = JSON.parse(stdout) as { metrics: Record<string, number> };
  assert.deepEqual(
    [metrics['recall@1'], metrics['answer_hit@1'], metrics['title_recall@1']],
    [2 / 3, undefined, undefined],
  );
  assert.match(stderr, /run\.txt has no titles and texts, so title_\* and answer_\* are not measured/);
});

test('what of a run, questions and judgements does not fit is said and counted', async () => {
  writeFileSync(join(cwd, 'part.txt'), 'q0 Q0 p0 1 9 x\nq0 Q0 elsewhere 2 8 x\nstrange Q0 p0 1 9 x\n');
  const { stderr } = await evaluate('--compare', 'part=part.txt');
  assert.match(stderr, /2 of 3 questions have no results in part\.txt, such as "q1": they count as 0\./);
  assert.match(stderr, /1 of 2 queries of part\.txt are not in the questions, such as "strange": they are not used\./);
  const { stderr: deeper } = await runTrawl([...EVAL.slice(0, -1), '5', '--compare', 'part=part.txt'], { cwd });
  assert.match(deeper, /1 of 1 lists of part\.txt have fewer than 5 passages\./);
  assert.match(
    deeper,
    /1 of 2 passages of part are not in ix, which gives their titles and texts, such as "elsewhere"\./,
  );

  write('unknown.jsonl', [
    { id: 'a', question: 'cat', gold_ids: ['p0', 'nowhere'] },
    { id: 'b', question: 'bread', gold_ids: ['p3'] },
    { id: 'c', question: 'sea' },
  ]);
  const unknown = await runTrawl(['eval', 'ix', '--queries', 'unknown.jsonl'], { cwd });
  assert.equal(unknown.code, 0);
  assert.match(
    unknown.stderr,
    /1 of 3 relevant passages are not in ix, such as "nowhere": no search can find them\.$/m,
  );
  assert.match(
    unknown.stderr,
    /1 of 3 questions have neither judgements nor answers, such as "c": they count in no metric\./,
  );
  writeFileSync(join(cwd, 'zero.txt'), 'a 0 p0 0\nb 0 p3 1\n');
  const zero = await runTrawl(['eval', 'ix', '--queries', 'unknown.jsonl', '--qrels', 'zero.txt'], { cwd });
  assert.match(zero.stderr, /1 judged questions have no relevant passage, such as "a": they count as 0\./);
});

test('judgements of which an index has no passage end with exit code 3, so that no script takes the zeros for a measurement', async () => {
  write('foreign.jsonl', [{ id: 'a', question: 'cat', gold_ids: ['x1', 'x2'] }]);
  const { code, stdout, stderr } = await runTrawl(['eval', 'ix', '--queries', 'foreign.jsonl', '--json'], { cwd });
  assert.equal(code, 3);
  assert.equal((JSON.parse(stdout) as { metrics: Record<string, number> }).metrics['recall@10'], 0);
  assert.match(stderr, /2 of 2 relevant passages are not in ix, such as "x1": no search can find them\. Check that/);
});

test('a run of which no passage or no question is judged ends with exit code 3, too', async () => {
  writeFileSync(join(cwd, 'foreign.txt'), 'q0 Q0 x1 1 9 x\nq1 Q0 x2 1 9 x\n');
  const foreign = await runTrawl(['eval', 'foreign.txt', ...EVAL.slice(2)], { cwd });
  assert.equal(foreign.code, 3);
  assert.match(
    foreign.stderr,
    /none of 2 passages of foreign\.txt is relevant to any question, such as "x1"\. Check that the judgements use the ids of this run/,
  );
  assert.match(foreign.stderr, /^(trawl: )?No search found a judged passage\.$/m);
  assert.doesNotMatch(foreign.stderr, /this index/);
  writeFileSync(join(cwd, 'unasked.txt'), 'other Q0 p0 1 9 x\n');
  const unasked = await runTrawl(['eval', 'unasked.txt', ...EVAL.slice(2)], { cwd });
  assert.equal(unasked.code, 3);
  assert.match(unasked.stderr, /3 of 3 questions have no results in unasked\.txt/);
});

test('empty files are refused instead of measured as 0', async () => {
  for (const name of ['empty.jsonl', 'empty.txt']) writeFileSync(join(cwd, name), '\n');
  writeFileSync(join(cwd, 'empty.json'), '[]');
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['eval', 'ix', '--queries', 'empty.jsonl'], /empty\.jsonl has no questions/],
    [['eval', 'ix', '--queries', 'empty.json'], /empty\.json has no questions/],
    [[...EVAL, '--qrels', 'empty.txt'], /empty\.txt has no judgements/],
    [[...EVAL, '--compare', 'empty.txt'], /empty\.txt has no lines/],
    [['eval', 'empty.txt', '--queries', 'questions.jsonl'], /empty\.txt has no lines/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr, stdout } = await runTrawl(args, { cwd });
    assert.deepEqual([code, stdout], [1, ''], args.join(' '));
    assert.match(stderr, message);
  }
});

test('wrong systems are refused with the way out', async () => {
  writeFileSync(join(cwd, 'five.txt'), 'q0 Q0 p0 1 9\n');
  writeFileSync(join(cwd, 'twice.txt'), 'q0 Q0 p0 1 9 x\nq0 Q0 p0 2 8 x\n');
  writeFileSync(join(cwd, 'score.txt'), 'q0 Q0 p0 1 high x\n');
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['--compare', '?mode=fast'], /mode of \\?"\?mode=fast\\?" is \\?"fast\\?"; expected one of dense, bm25, hybrid/],
    [['--compare', '?mod=bm25'], /unknown option "mod"; did you mean mode\?/],
    [['--compare', '?mode'], /The option mode of the system "\?mode" has no value/],
    [['--compare', '?filter=%zz'], /write % as %25/],
    [['--compare', '?k1=2'], /--k1 has no effect without --mode bm25 or hybrid/],
    [['--compare', 'run.txt?mode=bm25'], /mode of "run\.txt\?mode=bm25" has no effect: run\.txt is a run file/],
    [['--compare', 'a=run.txt', '--compare', 'a=ix'], /Two systems have the name a\./],
    [['--compare', 'run.txt', '--run', 'x'], /--run has no effect with --compare/],
    [['--html', 'x.html'], /--html has no effect without --compare SYSTEM/],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await evaluate(...args);
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`);
    assert.match(stderr, message);
  }
  for (const [file, message] of [
    ['five.txt', /five\.txt:1: expected the six fields of a TREC run/],
    ['twice.txt', /twice\.txt:2: an earlier line has the passage p0 for query q0, too/],
    ['score.txt', /score\.txt:1: the score is high; it must be a number/],
    ['corpus.jsonl', /corpus\.jsonl:1: /],
  ] as const) {
    const { code, stderr } = await evaluate('--compare', file);
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
  const missing = await evaluate('--compare', 'nowhere');
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /nowhere/);
});
