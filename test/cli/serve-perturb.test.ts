import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readGoldPassages } from '../../cli/serve/perturb-options.ts';
import { perturbationNotes } from '../../cli/serve/start-messages.ts';
import { Perturbation } from '../../training/perturbation/perturbation.ts';
import { perturbationSettings } from '../../training/perturbation/settings.ts';
import type { RecordStatistics } from '../../training/records/record-statistics.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { mineSample } from '../training/mining/mine-sample.ts';
import { endOf, fileFolder, jsonOf, runTrawl, SAMPLE, sampleIndex, serveIndex, spawnTrawl } from './run-trawl.ts';

const folder = await fileFolder();
const index = await sampleIndex(folder);
const QUESTIONS = join(SAMPLE, 'questions.jsonl');

interface SampleQuestion {
  readonly id: string;
  readonly question: string;
  readonly golden_answers: readonly string[];
  readonly gold_ids: readonly string[];
}
const questions = readFileSync(QUESTIONS, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as SampleQuestion);

interface Found {
  readonly results: readonly {
    readonly perturbed?: object;
    readonly hits: readonly { readonly id: string; readonly text: string }[];
  }[];
}

async function post(url: string, body: object): Promise<{ status: number; header: string | null; json: unknown }> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, header: response.headers.get('x-trawl-perturbed'), json: await response.json() };
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}

test('a server drops the gold passages of the sample questions, says so, and its records are not taken for rankings', async (t) => {
  const record = join(folder, 'record.jsonl');
  const args = ['--perturb', 'drop-gold=0.5,distractors=0.25', '--perturb-gold', QUESTIONS, '--perturb-seed', '7'];
  const { url, child, ended } = await serveIndex(t, index, [...args, '--record', record]);
  const asked = questions.slice(0, 24);
  const body = { queries: asked.map(({ question }) => ({ question, query: question })), k: 5 };
  const { json, header, status } = await post(`${url}/v1/search`, body);
  assert.equal(status, 200);
  let dropped = 0;
  for (const [i, { hits, perturbed }] of (json as Found).results.entries()) {
    const { gold_ids: gold } = asked[i]!;
    assert.equal(hits.length, 5);
    if (perturbed === undefined || !('droppedGold' in perturbed)) continue;
    assert.ok(
      hits.every(({ id }) => !gold.includes(id)),
      asked[i]!.question,
    );
    dropped++;
  }
  assert.ok(dropped > 5, `${dropped} of ${asked.length} questions lost a gold passage`);
  assert.match(String(header), /^drop-gold;\d.*, distractors;\d/);
  const ready = (await (await fetch(`${url}/readyz`)).json()) as { perturbation: { seed: number } };
  assert.equal(ready.perturbation.seed, 7);
  while (linesOf(record).length < asked.length) await sleep(10);
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  assert.equal(code, 0);
  assert.match(
    stderr,
    /note: answers of 127\.0\.0\.1:0 are perturbed on purpose: drop-gold 0\.5, distractors 0\.25 \(1 passage\), seed 7/,
  );

  // A replay leaves the changed lists out, and so compares nothing but equal ones.
  const report = jsonOf<{ notCompared: { perturbed: number }; all: { queries: number; identical: number } }>(
    await runTrawl(['replay', record, '--against', index, '--json', '--quiet']),
  );
  const changed = (json as Found).results.filter(({ perturbed }) => perturbed !== undefined).length;
  assert.equal(report.notCompared.perturbed, changed);
  assert.equal(report.all.identical, asked.length - changed);
  const statistics = jsonOf<RecordStatistics>(await runTrawl(['records', 'stats', record, '--json']));
  assert.equal(statistics.perturbed.droppedGold, dropped);

  // Mining searches the queries again: its rows do not depend on what was done to the recorded lists.
  const clean = join(folder, 'clean.jsonl');
  const withoutNotes = linesOf(record).map((line) => {
    const { perturbed: _, ...rest } = JSON.parse(line) as Record<string, unknown>;
    return `${JSON.stringify(rest)}\n`;
  });
  writeFileSync(clean, withoutNotes.join(''));
  const mined = await Promise.all(
    [record, clean].map((records, i) =>
      mineSample(index, join(folder, `mined-${i}.jsonl`), 'tevatron', QUESTIONS, ['--records', records]),
    ),
  );
  assert.ok(mined[0]!.rows.length > 10);
  assert.deepEqual(mined[0]!.rows, mined[1]!.rows);
});

test('a request that is held back when the server stops is answered within the grace period', async (t) => {
  const { url, child, ended } = await serveIndex(t, index, ['--perturb', 'delay=1', '--perturb-delay-ms', '700']);
  const asking = post(`${url}/retrieve`, { queries: ['a'] });
  const inFlight = async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('\ntrawl_requests_in_flight 1\n');
  while (!(await inFlight())) await sleep(10);
  child.kill('SIGTERM');
  const { status, header } = await asking;
  assert.deepEqual([status, header], [200, 'delay']);
  assert.equal((await ended).code, 0);
});

test('an address can have rates of its own, or none', async (t) => {
  const child = spawnTrawl([
    'serve',
    index,
    '--port',
    '0',
    '--perturb',
    'fail=1',
    '--listen',
    '0=search-r1:perturb=none',
    '--listen',
    '0:perturb=delay=0.5,distractors=1',
  ]);
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = endOf(child);
  while (!said.includes('search page')) await sleep(10);
  child.kill('SIGTERM');
  await ended;
  const notes = said.split('\n').filter((line) => line.includes('perturbed on purpose'));
  assert.deepEqual(
    notes.map((line) => line.slice(line.indexOf('purpose: ') + 9)),
    ['fail 1, seed 0', 'distractors 1 (1 passage), delay 0.5 (1000 ms), seed 0'],
  );
});

for (const [args, message] of [
  [['--perturb', 'drop-gold=0.1'], /--perturb drop-gold needs --perturb-gold QUESTIONS/],
  [['--perturb', 'slow=0.1'], /--perturb is "slow=0\.1"; expected drop-gold and distractors and delay and fail/],
  [['--perturb', 'fail=2'], /fail of --perturb is "2"; expected a number from 0 to 1/],
  [['--perturb', 'fail=0.1,fail=0.2'], /at most once each/],
  [['--perturb', 'fail'], /fail of --perturb is ""/],
  [['--perturb-delay-ms', '5'], /--perturb-delay-ms has no effect without --perturb/],
  [['--perturb', 'delay=1', '--perturb-delay-ms', '0'], /--perturb-delay-ms/],
  [['--listen', '0:perturb=drop-gold=1'], /needs --perturb-gold/],
  [['--listen', '0:perturb=nothing'], /--perturb is "nothing"/],
] as const) {
  test(`trawl serve ${args.join(' ')} is refused`, async () => {
    const { code, stderr } = await runTrawl(['serve', index, '--port', '0', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  });
}

test('a file of questions without gold passages is refused, and so is a damaged one', async () => {
  const without = join(folder, 'without.jsonl');
  writeFileSync(without, '{"id":1,"question":"Who?","gold_ids":[]}\n{"id":2,"question":"When?"}\n');
  await assert.rejects(readGoldPassages(without), trawlError('USAGE', /has 2 questions, and none has gold_ids/));
  const claims = join(folder, 'claims.jsonl');
  writeFileSync(claims, '{"id":1,"input":"A claim.","output":[{"answer":"SUPPORTS"}]}\n');
  await assert.rejects(readGoldPassages(claims), trawlError('USAGE', /has 1 questions, and none has gold_ids/));
  const damaged = join(folder, 'damaged.jsonl');
  writeFileSync(damaged, '{"id":1,"question":"Who?","gold_ids":["a"]}\nno JSON\n');
  await assert.rejects(readGoldPassages(damaged), trawlError('CORPUS_BAD_LINE', /damaged\.jsonl.*2/));
  await assert.rejects(readGoldPassages(join(folder, 'nothing.jsonl')), trawlError('CORPUS_NOT_FOUND'));
});

test('gold is what is judged relevant or has a golden answer that decides something, for the question of the query', async () => {
  const file = join(folder, 'gold.jsonl');
  const rows = [
    { id: 1, question: 'Who wrote it?', golden_answers: ['Émile Zola', 'no'], gold_ids: ['p-1'] },
    { id: 2, question: 'Was it so?', golden_answers: ['no'], dataset: 'nq' },
  ];
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const gold = await readGoldPassages(file);
  const passage = (id: string, text: string): string => JSON.stringify({ id, text });
  const zola = gold.of({ query: 'author of the book', question: 'Who wrote it?' })!;
  assert.deepEqual(
    [passage('p-1', 'x'), passage('p-2', 'By ÉMILE ZOLA.'), passage('p-3', 'No, no one.'), passage('p-4', 'x')].map(
      zola,
    ),
    [true, true, false, false],
  );
  assert.ok(gold.of({ query: 'Who wrote it? [SEP] author' })!(passage('p-1', 'x')));
  assert.ok(gold.of({ query: 'Who wrote it?' })!(passage('p-1', 'x')));
  assert.ok(gold.of({ query: 'author', questionId: '1' })!(passage('p-1', 'x')));
  assert.equal(gold.of({ query: 'author' }), undefined);
  assert.equal(gold.of({ query: 'x', questionId: '2', dataset: 'nq' })!(passage('p-3', 'no')), false);
});

test('the note of the start names each address with its settings', () => {
  const perturbation = new Perturbation(
    perturbationSettings({ 'drop-gold': 0.1, delay: 0.05 }, { seed: 3, delayMs: 500 }),
  );
  const lines = perturbationNotes([
    { perturbation: null, address: { host: '::1', port: 1 } },
    { perturbation, address: { host: '0.0.0.0', port: 8001 } },
  ]);
  assert.deepEqual(lines, [
    'answers of 0.0.0.0:8001 are perturbed on purpose: drop-gold 0.1, delay 0.05 (500 ms), seed 3',
  ]);
});
