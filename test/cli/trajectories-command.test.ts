import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TrajectoryReport } from '../../training/trajectories/report/trajectory-report.ts';
import { step1Item } from '../training/trajectories/step1-item.ts';
import { fileFolder, jsonOf, postJson, runTrawl, SAMPLE, sampleIndex, serveIndex } from './run-trawl.ts';

const folder = await fileFolder();
const index = await sampleIndex(folder);
const steps = join(folder, 'steps.json');
const questions = join(SAMPLE, 'questions.jsonl');

interface SampleQuestion {
  readonly id: string;
  readonly question: string;
  readonly gold_ids: readonly string[];
}

const [first, second] = (await readFile(questions, 'utf8'))
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as SampleQuestion) as [SampleQuestion, SampleQuestion];

await writeFile(
  steps,
  `${JSON.stringify([
    step1Item({
      id: first.id,
      question: first.question,
      em: 1,
      searches: [
        { query: 'nothing', shown: ['s-none'] },
        { query: 'a longer query', shown: first.gold_ids },
      ],
    }),
    step1Item({ id: 'other', question: second.question, em: 0, searches: [{ query: 'x', shown: second.gold_ids }] }),
  ])}\n`,
);

const report = (...args: string[]) => runTrawl(['trajectories', 'report', ...args]);

test('the report has the gold of a questions file, found by id or text, as JSON, as tables and as a page', async () => {
  const { all, unknownQuestions } = jsonOf<TrajectoryReport>(await report(steps, '--questions', questions, '--json'));
  assert.deepEqual(
    all.turns.map(({ goldAll }) => goldAll),
    [0.5, 1],
  );
  assert.deepEqual([all.correct, all.judged, unknownQuestions, all.truncated], [0.5, 2, 0, null]);
  const page = join(folder, 'report.html');
  const text = await report(steps, '--questions', questions, '--html', page);
  assert.match(text.stdout, /^2 trajectories with 3 queries/);
  assert.match(text.stderr, /report\.html: the report as a page/);
  assert.match(await readFile(page, 'utf8'), /^<!doctype html>[\s\S]*<td>[\s\S]*100\.0 %/);
});

test('with a model, queries above the token limit are counted by the text that was searched', async () => {
  const limited = ['--model', 'token-average-256', '--max-query-tokens', '5', '--json'];
  // [CLS] a longer query [SEP] are 5 tokens.
  assert.equal(jsonOf<TrajectoryReport>(await report(steps, ...limited)).all.truncated, 0);
  limited[3] = '4';
  assert.equal(jsonOf<TrajectoryReport>(await report(steps, ...limited)).all.truncated, 1);
  const whole = ['--model', 'token-average-256', '--json'];
  assert.equal(jsonOf<TrajectoryReport>(await report(steps, ...whole)).all.truncated, 0);
});

test('several files are one report', async () => {
  const { all } = jsonOf<TrajectoryReport>(await report(steps, steps, '--json'));
  assert.equal(all.trajectories, 4);
});

test('what a server recorded becomes a report and candidates', async (t) => {
  const calls = join(folder, 'calls.jsonl');
  const { url, child, ended } = await serveIndex(t, index, ['--record', calls]);
  const search = (queries: string[], record: object) => postJson(url, { queries, topk: 3, record });
  for (const [turn, query] of ['Which bridge?', first.question].entries()) {
    const { status } = await search([query, 'of nobody'], {
      trajectory: ['r-1', null],
      turn: turn + 1,
      question_id: [first.id, null],
      question: [first.question, null],
    });
    assert.equal(status, 200);
  }
  await search([second.question], { trajectory: 'r-2', turn: 1, question_id: second.id, question: second.question });
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
  const shown = await report('--records', calls, '--questions', questions, '--json');
  const { all } = jsonOf<TrajectoryReport>(shown);
  assert.deepEqual([all.trajectories, all.queries, all.judged, all.truncated], [2, 3, 2, 0]);
  assert.match(shown.stderr, /2 of 5 recorded queries have no trajectory and are left out/);
  // The same index shows the recorded queries the same again.
  const again = [
    'eval',
    index,
    '--queries',
    questions,
    '--records',
    calls,
    '--query-form',
    'queries',
    '--cutoffs',
    '3',
  ];
  const { coverage } = jsonOf<{ coverage: TrajectoryReport }>(await runTrawl([...again, '--json']));
  assert.deepEqual(
    coverage.all.turns.map(({ goldAny, goldAll, goldRecall }) => [goldAny, goldAll, goldRecall]),
    all.turns.map(({ goldAny, goldAll, goldRecall }) => [goldAny, goldAll, goldRecall]),
  );
  const out = join(folder, 'candidates.json');
  const made = await runTrawl([
    'agentic-r',
    'candidates',
    index,
    calls,
    '--records',
    '--questions',
    questions,
    '--out',
    out,
  ]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /3 rounds of 2 trajectories[\s\S]*2 without output\.prompt/);
  const items = JSON.parse(await readFile(out, 'utf8')) as {
    id: string;
    question: string;
    trajectory: { current_query: string; candidate_passage_ids: number[] }[];
  }[];
  assert.deepEqual(
    items.map(({ id, question, trajectory }) => [id, question, trajectory.map((round) => round.current_query)]),
    [
      ['r-1', first.question, ['Which bridge?', first.question]],
      ['r-2', second.question, [second.question]],
    ],
  );
  const older = join(folder, 'older.jsonl');
  await writeFile(older, (await readFile(calls, 'utf8')).replaceAll(/"generation":"[^"]*"/g, '"generation":"older"'));
  const ofOlder = ['agentic-r', 'candidates', index, older, '--records', '--out', join(folder, 'older.json')];
  const refused = await runTrawl(ofOlder);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /older\.jsonl:\d+: the query was asked in index generation older.*--any-generation/s);
  assert.equal((await runTrawl([...ofOlder, '--any-generation'])).code, 0);
  const recorded = (await readFile(calls, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { query: string; rows: number[] });
  for (const { trajectory } of items) {
    for (const { current_query: query, candidate_passage_ids: rows } of trajectory) {
      assert.deepEqual(
        rows.slice(0, 3),
        recorded.find((call) => call.query === query)!.rows,
        'the same text was searched',
      );
    }
  }
});

test('wrong command lines are refused with what is expected', async () => {
  for (const [args, message] of [
    [['report'], /<file…> is missing/],
    [['show', steps], /Unknown action trawl trajectories show; expected report/],
    [['report', steps, '--max-query-tokens', '128'], /--max-query-tokens has no effect without --model/],
    [['report', '--records', steps, '--model', 'token-average-256'], /--model has no effect with --records/],
  ] as const) {
    const ended = await runTrawl(['trajectories', ...args]);
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stderr, message);
  }
  const useless = await runTrawl(['agentic-r', 'candidates', index, steps, '--questions', questions, '--out', 'a']);
  assert.match(useless.stderr, /--questions has no effect without --records/);
  const records = await report('--records', steps);
  assert.match(records.stderr, /steps\.json:1: not a line of --record.*\[CORPUS_BAD_LINE\]/s);
  const absent = await report(join(folder, 'absent.json'));
  assert.match(absent.stderr, /\[CORPUS_NOT_FOUND\]/);
});
