import assert from 'node:assert/strict';
import { copyFileSync, existsSync, linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MiningSummary } from '../../../training/mining/mine-negatives.ts';
import { linesOf, QUESTIONS, questions, SUB_QUERIES } from '../../training/mining/mining-corpus.ts';
import { jsonOf, runTrawl } from '../run-trawl.ts';
import { folder, index, mine, mineRefused, writeRecords } from './planted-index.ts';

test('a file of origins has a line for each row; n-tuple leaves out what is too short', async () => {
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

test('origins have the generation of the index and the checksum of its encoder', async () => {
  const { rows, origins } = await mine();
  const inspected = jsonOf<{ generation: string; model: { sha256: string } }>(
    await runTrawl(['inspect', index, '--json']),
  );
  const { generation, model } = inspected;
  assert.equal(origins.length, rows.length);
  for (const row of origins) assert.deepEqual([row.generation, row.model], [generation, model.sha256]);
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

test('an existing file is not replaced without --restart, and nothing is left beside the finished files', async () => {
  const { out } = await mine();
  const before = readFileSync(out);
  const run = ['--queries', SUB_QUERIES, '--out', out, '--format', 'tevatron'];
  const { code, stderr } = await mineRefused(...run);
  assert.equal(code, 1);
  assert.match(stderr, /already exists.*--restart\. \[OUTPUT_EXISTS\]/);
  assert.deepEqual(readFileSync(out), before);
  assert.equal((await mineRefused(...run, '--restart')).code, 0);
  assert.notDeepEqual(readFileSync(out), before);
  const beside = readdirSync(folder).map((name) => join(folder, name));
  assert.deepEqual(beside.filter((path) => path.startsWith(out)).sort(), [
    out,
    `${out}.origins.jsonl`,
    `${out}.report.json`,
  ]);
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

test('a lone surrogate of a passage or question does not make the file unreadable for other programs', async () => {
  const corpus = join(folder, 'surrogates.jsonl');
  const passages = Array.from({ length: 8 }, (_, i) => ({
    id: `p${i}`,
    contents: `rivers and bridges of town ${i} \ud83d`,
  }));
  writeFileSync(corpus, passages.map((passage) => `${JSON.stringify(passage)}\n`).join(''));
  const queries = join(folder, 'surrogate-questions.jsonl');
  writeFileSync(queries, `${JSON.stringify({ id: 'q', question: 'which town \udc00', gold_ids: ['p1'] })}\n`);
  const small = join(folder, 'surrogates');
  const built = await runTrawl(['index', corpus, '--out', small, '--model', 'token-average-256', '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const out = join(folder, 'surrogate-rows.jsonl');
  const args = ['--format', 'flagembedding', '--near-duplicate', 'off', '--quiet'];
  const mined = await runTrawl(['mine', small, '--queries', queries, '--out', out, ...args]);
  assert.equal(mined.code, 0, mined.stderr);
  for (const path of [out, `${out}.origins.jsonl`]) {
    const text = readFileSync(path, 'utf8');
    assert.doesNotMatch(text, /\\ud[89a-f]/, path);
    assert.match(text, /\ufffd/, path);
  }
});
