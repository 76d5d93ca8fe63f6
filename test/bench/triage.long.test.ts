import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { TriageRecord } from '../../bench/triage/bench-triage.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';

const QUESTIONS = join(SAMPLE, 'questions.jsonl');
const folder = await fileFolder();
const [present, small] = ['present', 'small'].map((name) => join(folder, name)) as [string, string];

before(async () => {
  for (const [out, dimension] of [
    [present, '256'],
    [small, '16'],
  ] as const) {
    const ended = await runTrawl(['index', SAMPLE_PASSAGES, '--out', out, '--dimension', dimension, '--quiet']);
    assert.equal(ended.code, 0, ended.stderr);
  }
});

const BENCH = ['bench', 'triage', '--query-texts', QUESTIONS, '--quiet'];

test('bench triage measures the error of each estimate, and finds none where the whole rest is sampled', async () => {
  const args = [
    ...BENCH,
    '--index',
    present,
    '--tried',
    small,
    '--depths',
    '0,5',
    '--samples',
    '20,100',
    '--runs',
    '2',
  ];
  const records = jsonOf<TriageRecord[]>(await runTrawl([...args, '--json']));
  const evaluated = jsonOf<{ metrics: Record<string, number> }>(
    await runTrawl(['eval', small, '--queries', QUESTIONS, '--json', '--quiet']),
  );
  assert.equal(records.length, 2 * 2 * 3);
  for (const { k, whole, errors, sampleShare, depth } of records) {
    assert.ok(Math.abs(whole - evaluated.metrics[`recall@${k}`]!) < 1e-12);
    const what = `@${k}, depth ${depth}, sample ${sampleShare}`;
    if (sampleShare === 1) for (const { worst } of Object.values(errors)) assert.ok(Math.abs(worst) < 1e-12, what);
    else assert.ok(errors.bound.mean >= errors.tail.mean && (depth > 0 || errors.bound.mean > 0), what);
  }
  const { stdout } = await runTrawl([...args, '--questions', '20']);
  assert.match(stdout, /20 questions, present encoder: present/);
  assert.match(stdout, /\| +small \| 5 +\|/);
});

test('bench triage refuses an index of other passages, and arguments that are missing or wrong', async () => {
  const other = join(folder, 'other');
  const corpus = join(folder, 'other.jsonl');
  writeFileSync(corpus, '{"id":"s-0001","contents":"Another passage."}\n');
  await runTrawl(['index', corpus, '--out', other, '--quiet']);
  for (const [args, message] of [
    [['--index', present, '--tried', other], /other has other passages than --index/],
    [['--index', present], /--tried is missing: an index of the same passages/],
    [['--tried', small], /--index is missing: the index of the present encoder/],
    [['--index', present, '--tried', small, '--samples', '120'], /--samples is "120"; expected numbers from 0 to 100/],
    [['--index', present, '--tried', small, '--depths', '1.5'], /--depths is "1.5"; expected whole numbers/],
  ] as const) {
    const ended = await runTrawl([...BENCH, ...args]);
    assert.notEqual(ended.code, 0);
    assert.match(ended.stderr, message);
  }
});
