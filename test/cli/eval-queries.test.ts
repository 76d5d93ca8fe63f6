import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { MetricIntervals } from '../../evaluation/compare-evaluations.ts';
import type { ComparisonReport } from '../../evaluation/systems/comparison.ts';
import type { TrajectoryReport } from '../../training/trajectories/report/trajectory-report.ts';
import { recordLine } from '../helpers/record-lines.ts';
import { sampleServer } from '../helpers/sample-server.ts';
import { step1Item } from '../training/trajectories/step1-item.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES } from './run-trawl.ts';

interface Report {
  readonly source: string;
  readonly queries: number;
  readonly questions?: number;
  readonly judged: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly intervals: MetricIntervals;
  readonly coverage?: TrajectoryReport;
}

const cwd = await fileFolder();
const server = await sampleServer();

const TEXTS = ['The cat sat on the mat.', 'Rivers flow down to the sea.', 'Bread is baked from flour and water.'];

function write(name: string, rows: readonly object[]): void {
  writeFileSync(join(cwd, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

before(async () => {
  write(
    'corpus.jsonl',
    TEXTS.map((contents, i) => ({ id: `p${i}`, contents })),
  );
  write('questions.jsonl', [
    {
      id: 'q0',
      question: 'Which two?',
      queries: [TEXTS[0], TEXTS[1]],
      gold_ids: ['p0', 'p1'],
      golden_answers: ['sea'],
    },
    { id: 'q1', question: TEXTS[2], queries: [TEXTS[2]], gold_ids: ['p2'] },
  ]);
  const built = await runTrawl(['index', 'corpus.jsonl', '--out', 'ix', '--model', 'token-average-256', '--quiet'], {
    cwd,
  });
  assert.equal(built.code, 0, built.stderr);
});

const evaluate = (...args: string[]) => runTrawl(['eval', 'ix', '--cutoffs', '1', ...args], { cwd });

test('the lists of several queries are fused, and what all of them show is measured', async () => {
  const { metrics } = jsonOf<Report>(
    await evaluate('--queries', 'questions.jsonl', '--query-form', 'queries', '--json'),
  );
  assert.deepEqual(
    ['recall@1', 'union_recall@1', 'union_all_gold@1', 'union_answer_hit@1'].map((name) => metrics[name]),
    [(0.5 + 1) / 2, 1, 1, 1],
  );
  const question = jsonOf<Report>(await evaluate('--queries', 'questions.jsonl', '--query-form', 'question', '--json'));
  assert.ok(!('union_recall@1' in question.metrics));
});

test('the plain question, each query with the question, and queries alone are compared as systems', async () => {
  const { stdout, code } = await evaluate(
    ...['--queries', 'questions.jsonl', '--query-form', 'question'],
    ...['--compare', 'fused=?query-form=queries', '--compare', 'both=?query-form=question-and-queries'],
  );
  assert.equal(code, 0);
  assert.match(stdout, /^ +ix +fused +both$/m);
  assert.match(stdout, /^union_recall@1 +– +1\.0000 +/m);
});

test('a line without queries is refused if the form needs them', async () => {
  write('single.jsonl', [{ id: 'a', question: 'cat', queries: [], gold_ids: ['p0'] }]);
  const { code, stderr } = await evaluate('--queries', 'single.jsonl', '--query-form', 'queries');
  assert.equal(code, 2);
  assert.match(stderr, /Question a has no "queries", which --query-form queries needs on every line/);
});

test('trajectories are searched again: metrics by trajectory, and what would have been shown by turn', async () => {
  const steps = [
    step1Item({
      id: 'q0',
      question: 'Which two?',
      searches: [
        { query: TEXTS[0]!, shown: [] },
        { query: TEXTS[1]!, shown: [] },
      ],
    }),
    step1Item({ id: 'q0', question: 'Which two?', searches: [{ query: TEXTS[2]!, shown: [] }] }),
    step1Item({ id: 'q0', question: 'Which two?', searches: [] }),
    step1Item({ id: 'elsewhere', question: 'Unknown?', searches: [{ query: 'x', shown: [] }] }),
  ];
  writeFileSync(join(cwd, 'steps.json'), JSON.stringify(steps));
  const asked = ['--queries', 'questions.jsonl', '--trajectories', 'steps.json', '--query-form', 'queries'];
  const ended = await evaluate(...asked, '--json');
  const { source, judged, metrics, coverage } = jsonOf<Report>(ended);
  assert.match(source, /; queries of 4 trajectories$/);
  assert.equal(judged, 3);
  assert.equal(metrics['union_recall@1'], 1 / 3);
  assert.deepEqual(
    coverage!.all.turns.map(({ goldRecall, goldAll }) => [goldRecall, goldAll]),
    [
      [0.5 / 3, 0],
      [1 / 3, 1 / 3],
    ],
  );
  assert.match(
    ended.stderr,
    /1 of 4 trajectories have a question that is not in the questions; 0 of them have no golden answers/,
  );
  assert.match(ended.stderr, /1 of 4 trajectories have no search: they count as 0/);
  assert.match(ended.stderr, /1 of 2 questions have no trajectory: they are left out/);
  const { stdout } = await evaluate(...asked);
  assert.match(stdout, /^turn +trajectories +any gold +all gold +gold recall +answer shown$/m);
});

test('records of questions in a folder of BEIR need no judgements but those of --qrels', async () => {
  mkdirSync(join(cwd, 'beir'));
  write('beir/queries.jsonl', [{ _id: 'q0', text: 'Which two?' }]);
  writeFileSync(join(cwd, 'beir.txt'), 'q0 0 p0 1\nq0 0 p1 1\n');
  const calls = [TEXTS[0]!, TEXTS[1]!].map((query, i) =>
    recordLine(query, { trajectory: 't', turn: i + 1, questionId: 'q0', question: 'Which two?' }),
  );
  writeFileSync(join(cwd, 'calls.jsonl'), calls.join(''));
  const asked = ['--queries', 'beir', '--qrels', 'beir.txt', '--records', 'calls.jsonl', '--query-form', 'queries'];
  const { judged, metrics } = jsonOf<Report>(await evaluate(...asked, '--json'));
  assert.deepEqual([judged, metrics['union_recall@1']], [1, 1]);
});

test('copies of every trajectory change no interval and no p-value, and both counts are shown', async () => {
  const questions = ['q0', 'q1'].map((id) => ({ id, question: id === 'q0' ? 'Which two?' : TEXTS[2]! }));
  const steps = questions.map(({ id, question }) =>
    step1Item({ id, question, searches: [{ query: TEXTS[id === 'q0' ? 0 : 2]!, shown: [] }] }),
  );
  writeFileSync(join(cwd, 'once.json'), JSON.stringify(steps));
  writeFileSync(join(cwd, 'often.json'), JSON.stringify(steps.flatMap((step) => [step, step, step])));
  const asked = ['--queries', 'questions.jsonl', '--compare', 'plain=?query-form=question', '--query-form', 'queries'];
  const reportOf = async (file: string) =>
    jsonOf<ComparisonReport & { systems: Report[] }>(await evaluate(...asked, '--trajectories', file, '--json'));
  const [once, often] = [await reportOf('once.json'), await reportOf('often.json')];
  assert.deepEqual(often.systems[0]!.intervals, once.systems[0]!.intervals);
  assert.deepEqual(often.systems[0]!.intervals['recall@1'], { low: 0.5, high: 1 });
  const metricOf = ({ comparisons }: ComparisonReport) => comparisons[0]!.metrics['recall@1']!;
  assert.deepEqual([metricOf(often).p, metricOf(often).interval], [metricOf(once).p, metricOf(once).interval]);
  assert.deepEqual([metricOf(once).queries, metricOf(once).questions], [2, undefined]);
  assert.deepEqual([metricOf(often).queries, metricOf(often).questions], [6, 2]);
  assert.deepEqual([often.systems[0]!.queries, often.systems[0]!.questions], [6, 2]);
  const { stdout } = await evaluate(...asked, '--trajectories', 'often.json');
  assert.match(stdout, /^queries 6 of 2 questions \(/m);
  assert.match(stdout, /^recall@1: of the trajectories 0 better, \d worse, \d unchanged$/m);
  assert.match(stdout, /better +worse +trajectories +questions\nrecall@1 .* 6 +2$/m);
});

test('questions with one id in two data sets are two', async () => {
  const asked = (question: string) =>
    step1Item({ id: 'q1', question, answers: ['cat'], searches: [{ query: question, shown: [] }] });
  const other = 'A question of another data set?';
  writeFileSync(join(cwd, 'two-sets.json'), JSON.stringify([other, TEXTS[2]!, other, TEXTS[2]!].map(asked)));
  const report = jsonOf<Report>(
    await evaluate(
      ...['--queries', 'questions.jsonl', '--trajectories', 'two-sets.json', '--query-form', 'queries'],
      ...['--per-question', 'two-sets.jsonl', '--json'],
    ),
  );
  assert.deepEqual([report.queries, report.questions, report.judged], [4, 2, 2]);
  const lines = readFileSync(join(cwd, 'two-sets.jsonl'), 'utf8').trimEnd().split('\n');
  const ids = lines.map((line) => JSON.parse(line) as { id: string; question?: string });
  assert.deepEqual(
    ids.map(({ id, question = id }) => [id, question]),
    [
      ['q1#2', 'q1#2'],
      ['q1', 'q1'],
      ['q1#3', 'q1#2'],
      ['q1#4', 'q1'],
    ],
  );
});

test('where no question finds a passage with its own id, --ignore-identical-ids changes nothing, in fused lists and hybrid search either', async () => {
  const built = ['index', SAMPLE_PASSAGES, '--out', 'words', '--model', 'token-average-256', '--bm25', '--quiet'];
  assert.equal((await runTrawl(built, { cwd })).code, 0);
  write(
    'several.jsonl',
    Array.from({ length: 20 }, (_, i) => ({
      id: `f${i}`,
      question: 'Which ones?',
      queries: ['the river and the city', `the number ${i}`, 'a composer of symphonies'],
      gold_ids: [`s-00${10 + i}`],
    })),
  );
  for (const more of [
    ['--queries', join(SAMPLE, 'questions.jsonl'), '--mode', 'hybrid', '--cutoffs', '1,100'],
    ['--queries', 'several.jsonl', '--query-form', 'queries', '--cutoffs', '3'],
  ]) {
    const [ignored, counted] = await Promise.all(
      ['yes', 'no'].map(async (ignoring) => {
        const run = `${ignoring}.run`;
        const { code, stderr } = await runTrawl(
          ['eval', 'words', ...more, '--run', run, '--ignore-identical-ids', ignoring],
          { cwd },
        );
        assert.equal(code, 0, stderr);
        return readFileSync(join(cwd, run), 'utf8');
      }),
    );
    assert.equal(ignored, counted);
  }
});

test('a server is asked each query, and the lists are fused as for an index', async () => {
  write('bridges.jsonl', [
    {
      id: 'b',
      question: 'Which?',
      queries: ['who designed the Brooklyn Bridge', 'capital of Finland'],
      gold_ids: ['s-0001', 's-none'],
    },
  ]);
  const asked = [
    '--url',
    server.url,
    '--queries',
    'bridges.jsonl',
    '--query-form',
    'queries',
    '--cutoffs',
    '3',
    '--json',
  ];
  const { metrics, server: report } = jsonOf<Report & { server: { requests: number } }>(
    await runTrawl(['eval', ...asked], { cwd }),
  );
  assert.equal(report.requests, 2);
  assert.equal(metrics['union_recall@3'], 0.5);
});
