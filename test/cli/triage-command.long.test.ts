import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import type { TriageReport } from '../../training/triage/triage-model.ts';
import { type FaultLibrary, faultLibrary } from '../helpers/fault-library.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';
import { type Ended, endOf, fileFolder, jsonOf, runTrawl, SAMPLE, sampleIndex, spawnTrawl } from './run-trawl.ts';

const QUESTIONS = join(SAMPLE, 'questions.jsonl');
const MODEL = ['--model', 'token-average-256'];
const folder = await fileFolder();
const library = faultLibrary(folder);
const skip = 'missing' in library ? library.missing : false;
let index = '';

before(async () => {
  index = await sampleIndex(folder);
});

function command(...more: readonly string[]): string[] {
  return ['triage', index, 'token-average-256', '--queries', QUESTIONS, '--depth', '3', '--sample', '30', ...more];
}

async function reportOf(...more: readonly string[]): Promise<TriageReport> {
  return jsonOf<TriageReport>(await runTrawl(command('--json', ...more)));
}

function figures(ended: Ended): Omit<TriageReport, 'times'> {
  const { times: _, ...report } = jsonOf<TriageReport>(ended);
  return report;
}

test('the whole recall of the present encoder, and that of a pool of everything, are those of trawl eval', async () => {
  const evaluated = jsonOf<{ metrics: Record<string, number> }>(
    await runTrawl(['eval', index, '--queries', QUESTIONS, '--json', '--quiet']),
  );
  const report = await reportOf('--sample', '100000');
  assert.equal(report.passages.pool, report.passages.whole);
  for (const { k, tried, present } of report.recall) {
    const recall = evaluated.metrics[`recall@${k}`]!;
    // The means are summed in another order.
    for (const value of [tried.bound.value, tried.estimate!.value, tried.counts!, present.whole.value]) {
      assert.ok(Math.abs(value - recall) < 1e-12, `@${k}: ${value}, ${recall}`);
    }
  }
  assert.ok(!existsSync(`${index}.triage`));
});

test('a gate decides the exit code, and the report says how much was embedded and how long all would take', async () => {
  const passed = await runTrawl(command('--dimension', '128', '--max-drop', '0.5'));
  assert.equal(passed.code, EXIT.ok, passed.stderr);
  assert.match(passed.stdout, /^PASSED: estimated recall@10 0\.\d{4} is not below 0\.\d{4}$/m);
  assert.match(passed.stdout, /^pool: \d+ passages of \d+ \(\d+\.\d %\): \d+ retrieved or relevant, 30 at random/m);
  assert.match(passed.stdout, /^embedded in .* passages a second\); all \d+ would take /m);
  const refused = await runTrawl(command('--dimension', '4', '--min-recall', '0.9', '--gate-k', '5'));
  assert.equal(refused.code, EXIT.problems, refused.stderr);
  assert.match(refused.stdout, /^REFUSED: /m);
  const undecided = await runTrawl(command());
  assert.equal(undecided.code, EXIT.ok);
  assert.match(undecided.stdout, /no gate \(--min-recall, --max-drop\): nothing was decided/);
});

test('a checkpoint is imported first, and one with random weights is refused', async () => {
  const checkpoint = join(folder, 'checkpoint');
  for (const [name, content] of Object.entries(tinyCheckpoint())) {
    mkdirSync(dirname(join(checkpoint, name)), { recursive: true });
    writeFileSync(join(checkpoint, name), content);
  }
  const work = join(folder, 'work-checkpoint');
  const args = ['triage', index, checkpoint, '--queries', QUESTIONS, '--max-drop', '0.1', '--work', work];
  const ended = await runTrawl([...args, '--keep-vectors']);
  assert.equal(ended.code, EXIT.problems, ended.stderr);
  assert.match(ended.stderr, /importing the checkpoint/);
  assert.match(ended.stdout, /^checkpoint \(float32, 32 dimensions\)/);
  assert.match(ended.stdout, /^REFUSED: /m);
  assert.equal(readdirSync(work).filter((name) => /^model-[0-9a-f]{16}$/.test(name)).length, 1);
  const again = await runTrawl([...args, '--cutoffs', '3']);
  assert.doesNotMatch(again.stderr, /importing/);
  assert.match(again.stdout, /by earlier runs/);
  assert.ok(!existsSync(work));
});

test('BM25 lists, the lists of a further index, and judgements from a file take part', async () => {
  const words = join(folder, 'words');
  const built = await runTrawl([
    'index',
    join(SAMPLE, 'passages.jsonl'),
    '--out',
    words,
    '--bm25',
    ...MODEL,
    '--quiet',
  ]);
  assert.equal(built.code, 0, built.stderr);
  const qrels = join(folder, 'qrels.txt');
  writeFileSync(qrels, 'q-001 0 s-0001 1\nq-002 0 nowhere 1\n');
  const args = ['triage', words, 'token-average-256', '--queries', QUESTIONS, '--qrels', qrels, '--depth', '2'];
  const report = jsonOf<TriageReport>(
    await runTrawl([
      ...args,
      '--also-bm25',
      '--index',
      `first=${index}`,
      '--json',
      '--work',
      join(folder, 'work-words'),
    ]),
  );
  assert.deepEqual(
    report.passages.sources.map(({ name }) => name),
    ['relevant', 'words, dense', 'words, bm25', 'first, dense'],
  );
  assert.deepEqual([report.questions.judged, report.questions.missing], [2, 1]);
  const alone = join(folder, 'words-alone');
  await runTrawl(['index', join(SAMPLE, 'passages.jsonl'), '--out', alone, '--bm25', '--quiet']);
  const ofWords = jsonOf<TriageReport>(
    await runTrawl(['triage', alone, ...args.slice(2), '--also-bm25', '--json', '--work', join(folder, 'work-alone')]),
  );
  assert.deepEqual(
    ofWords.passages.sources.map(({ name }) => name),
    ['relevant', 'words-alone, bm25'],
  );
  assert.ok(ofWords.recall.every(({ present }) => present.asNew === null));
  assert.equal(ofWords.recall.at(-1)!.present.whole.value, 0.5);
});

test('questions of other formats are read, and judgements with unknown ids are refused', async () => {
  const beir = join(folder, 'beir');
  mkdirSync(join(beir, 'qrels'), { recursive: true });
  const words = 'what is the capital of the province';
  writeFileSync(join(beir, 'queries.jsonl'), `${JSON.stringify({ _id: 'b-1', text: words })}\n`);
  writeFileSync(join(beir, 'qrels', 'test.tsv'), 'query-id\tcorpus-id\tscore\nb-1\ts-0001\t2\nb-1\ts-0002\t0\n');
  const args = [
    'triage',
    index,
    'token-average-256',
    '--depth',
    '2',
    '--sample',
    '5',
    '--work',
    join(folder, 'work-beir'),
  ];
  const report = jsonOf<TriageReport & { source: string }>(await runTrawl([...args, '--queries', beir, '--json']));
  assert.equal(report.source, 'BEIR, judgements of qrels/test.tsv');
  assert.deepEqual([report.questions.judged, report.questions.relevant, report.questions.missing], [1, 1, 0]);
  const array = join(folder, 'dpr.json');
  const context = { title: 'T', text: 't', passage_id: 'elsewhere' };
  writeFileSync(array, JSON.stringify([{ question: words, answers: ['a'], positive_ctxs: [context] }]));
  const refused = await runTrawl([...args, '--queries', array, '--max-drop', '0']);
  assert.equal(refused.code, EXIT.failed);
  assert.match(refused.stderr, /None of the 1 relevant passages of 1 questions is in the index .*"elsewhere"/);
});

test('what other trials left in the work folder is named, and stays', async () => {
  const work = join(folder, 'work-left');
  const kept = '0123456789abcdef';
  mkdirSync(join(work, kept), { recursive: true });
  const next = await runTrawl(command('--work', work, '--seed', '1'));
  assert.ok(next.stderr.includes(`${work} has files of other trials, stopped, kept or running: ${kept}.`), next.stderr);
  assert.deepEqual(readdirSync(work), [kept]);
});

test('wrong arguments are refused before anything is embedded', async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['triage', index], /<model> is missing/],
    [['triage', index, 'token-average-256'], /--queries is missing/],
    [command('--cutoffs', '0'), /--cutoffs is "0"; expected whole numbers from 1/],
    [command('--gate-k', '3', '--min-recall', '0.5'), /--gate-k is 3, which is none of --cutoffs 1,5,10/],
    [command('--gate-k', '5'), /--gate-k has no effect without --min-recall or --max-drop/],
    [command('--min-recall', '2'), /--min-recall is "2"; expected a number from 0 to 1/],
    [command('--max-drop', '-1'), /--max-drop/],
    [command('--filter', 'year > 1'), /--filter: /],
    [command('--view', 'train'), /--view train needs --views FILE/],
    [command('--query-form', 'query'), /has no "query", which --query-form query needs/],
    [command('--dimension', '999'), /dimension/],
    [['triage', index, 'http://127.0.0.1:1', '--queries', QUESTIONS], /is a URL; trawl triage tries a checkpoint/],
    [['triage', index, 'no-such-model', '--queries', QUESTIONS], /Model "no-such-model" not found/],
  ];
  for (const [args, message] of cases) {
    const ended = await runTrawl(args);
    assert.notEqual(ended.code, EXIT.ok, args.join(' '));
    assert.match(ended.stderr, message);
  }
});

test('a killed run resumes, and reports what an undisturbed one reports', { skip }, async (t) => {
  const { environment, count } = library as FaultLibrary;
  const rows = Array.from({ length: 800 }, (_, i) => ({ id: `p${i}`, contents: `Passage ${i} of house ${i % 37}.` }));
  const corpus = join(folder, 'many.jsonl');
  writeFileSync(corpus, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const questions = join(folder, 'many-questions.jsonl');
  writeFileSync(questions, `${JSON.stringify({ id: 'q', question: 'passage 7', gold_ids: ['p7', 'p8'] })}\n`);
  const many = join(folder, 'many');
  assert.equal((await runTrawl(['index', corpus, '--out', many, '--quiet'])).code, 0);
  const run = (work: string): string[] => {
    const args = ['--queries', questions, '--sample', '5000', '--checkpoint-seconds', '0', '--work', work];
    return ['triage', many, 'token-average-256', '--dimension', '64', ...args, '--json', '--quiet'];
  };
  const undisturbed = join(folder, 'work-undisturbed');
  const counted = join(folder, 'calls');
  const first = await endOf(spawnTrawl(run(undisturbed), { env: environment({ under: undisturbed, count: counted }) }));
  const expected = figures(first);
  const calls = count(counted);
  assert.ok(calls > 20, `${calls} calls`);
  let resumed = 0;
  for (const share of [0.5, 0.9]) {
    const work = join(folder, `work-${share}`);
    const env = environment({ under: work, at: Math.round(share * calls), do: 'kill' });
    assert.equal((await endOf(spawnTrawl(run(work), { env }))).signal, 'SIGKILL');
    const again = await runTrawl(run(work));
    assert.deepEqual(figures(again), expected, `killed at ${share} of ${calls} calls`);
    resumed += jsonOf<TriageReport>(again).times.resumed > 0 ? 1 : 0;
    assert.ok(!existsSync(work));
  }
  t.diagnostic(`${resumed} of 2 runs resumed at a checkpoint, among ${calls} calls`);
  assert.equal(resumed, 2);
});
