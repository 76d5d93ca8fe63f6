import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { step1Item } from '../training/trajectories/step1-item.ts';
import { endOf, fileFolder, jsonOf, runTrawl, SAMPLE_PASSAGES, sampleIndex, spawnTrawl } from './run-trawl.ts';

const folder = await fileFolder();
const index = await sampleIndex(folder);
const sample = (await readFile(SAMPLE_PASSAGES, 'utf8')).trimEnd().split('\n');
const trajectories = join(folder, 'hotpotqa-steps.json');

/** Trajectories about the sample corpus: each searches twice. */
async function writeTrajectories(path: string, count: number): Promise<void> {
  const items = Array.from({ length: count }, (_, i) => {
    const { text } = JSON.parse(sample[i % sample.length]!) as { text: string };
    const words = text.split(/\s+/);
    const [first, second] = [words.slice(0, 6).join(' '), words.slice(4, 12).join(' ')];
    return step1Item({
      id: `train_${i}`,
      question: `What about ${first}?`,
      searches: [{ query: first, searchedText: `What about ${first}? [SEP] ${first}` }, { query: `${second} ${i}` }],
    });
  });
  await writeFile(path, JSON.stringify(items));
}
await writeTrajectories(trajectories, 12);

interface Item {
  readonly id: string;
  readonly trajectory: readonly { readonly current_query: string; readonly candidate_passage_ids: readonly number[] }[];
}

interface Counts {
  readonly rounds: number;
  readonly rows: number;
  readonly otherIds: number;
}

const agenticR = (...args: string[]) => runTrawl(['agentic-r', ...args]);

test('candidates, hand-over, check and construct give rows whose passages are in the hand-over', async () => {
  const out = join(folder, 'steps', 'train.json');
  const failed = await agenticR('candidates', index, trajectories, '--out', out);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /steps.*\[OUTPUT_NOT_WRITABLE\]/s);
  const candidates = join(folder, 'train.json');
  const made = await agenticR('candidates', index, trajectories, '--out', candidates, '--json');
  const { rounds } = jsonOf<Counts>(made);
  assert.equal(rounds, 24);
  const items = JSON.parse(await readFile(candidates, 'utf8')) as Item[];
  assert.ok(items.every(({ trajectory }) => trajectory.every((round) => round.candidate_passage_ids.length === 20)));
  const report = JSON.parse(await readFile(`${candidates}.report.json`, 'utf8')) as { settings: { k: number } };
  assert.equal(report.settings.k, 20);

  // The same text gives the same rows as trawl search.
  const searched = await runTrawl(['search', index, 'What about nothing?', '--k', '20', '--json']);
  assert.equal(searched.code, 0);

  const handed = join(folder, 'handed');
  const over = await agenticR('hand-over', index, candidates, '--out', handed, '--json');
  assert.equal(jsonOf<Counts>(over).rounds, 24);
  const passages = (await readFile(join(handed, 'passages.jsonl'), 'utf8')).trimEnd().split('\n');
  const known = new Set(passages.map((line) => (JSON.parse(line) as { id: string }).id));
  const lines = (await readFile(join(handed, 'rounds.jsonl'), 'utf8')).trimEnd().split('\n');
  const handedRounds = lines.map((line) => JSON.parse(line) as Record<string, unknown> & { passage_ids: string[] });
  assert.ok(handedRounds.every(({ passage_ids: ids }) => ids.every((id) => known.has(id))));

  // A judge that finds the first candidate useful.
  const local = handedRounds.map(({ id, round_index, passage_ids }) =>
    JSON.stringify({
      id,
      round_index,
      docid_score: Object.fromEntries(passage_ids.map((row, i) => [row, i === 0 ? 85 : 20])),
    }),
  );
  const global = handedRounds.map(({ id, round_index, question, history_queries, current_query, passage_ids }) =>
    JSON.stringify({
      id,
      question,
      round_index,
      history_queries,
      current_query,
      docid_score: Object.fromEntries(passage_ids.map((row, i) => [row, { metric_score: { em: i < 2 ? 1 : 0 } }])),
    }),
  );
  await writeFile(join(folder, 'local.jsonl'), local.join('\n'));
  await writeFile(join(folder, 'global.jsonl'), global.slice(1).join('\n'));
  const files = ['--local', join(folder, 'local.jsonl'), '--global', join(folder, 'global.jsonl')];
  const missing = join(folder, 'missing.jsonl');
  const checked = await agenticR('check', candidates, ...files, '--missing', missing);
  assert.equal(checked.code, 3, checked.stderr);
  assert.match(checked.stdout, /24 rounds, 23 with usable utilities\n {2}1 without global utilities/);
  assert.deepEqual(JSON.parse(await readFile(missing, 'utf8')), {
    id: 'train_0',
    round_index: 1,
    problem: 'no-global',
  });
  await writeFile(join(folder, 'global.jsonl'), global.join('\n'));
  assert.equal((await agenticR('check', candidates, ...files)).code, 0);

  const rows = join(folder, 'rows.jsonl');
  const constructed = await agenticR('construct', candidates, ...files, '--out', rows, '--json');
  assert.equal(jsonOf<Counts>(constructed).rows, 24);
  const [row] = (await readFile(rows, 'utf8'))
    .split('\n')
    .map((line) => JSON.parse(line || '{}') as Record<string, unknown>);
  assert.equal(row!['dataset'], 'train');
  assert.equal((row!['passage_ids'] as string[]).length, 16);
  assert.ok((row!['passage_ids'] as string[]).every((id) => known.has(id)));
  const again = await agenticR('construct', candidates, ...files, '--out', rows);
  assert.match(again.stderr, /--overwrite.*\[OUTPUT_EXISTS\]/s);
  const text = await agenticR(
    ...['construct', candidates, ...files, '--out', rows, '--overwrite', '--exclude-correct', '--group-size', '19'],
  );
  assert.match(text.stdout, /24 rows of 24 rounds[\s\S]*excluded: 24 negatives, em 1/);
});

test('candidates goes on behind a query that a server refuses, names it, and ends with exit code 1', async (t) => {
  let isDown = false;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += String(part);
    const { query, texts } = JSON.parse(body) as { query: string; texts: string[] };
    const isFailing = isDown && query === 'a river';
    if (isFailing || query === 'refused') response.writeHead(isFailing ? 500 : 422).end();
    else response.end(JSON.stringify(texts.map((text, i) => ({ index: i, score: text.length / 1000 }))));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const [file, out] = [join(folder, 'refused.json'), join(folder, 'refused-candidates.json')];
  const searches = ['a bridge', 'refused', 'a river'].map((query) => ({ query, searchedText: query }));
  await writeFile(file, JSON.stringify([step1Item({ id: 'x', searches })]));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reranking = ['--rerank', url, '--rerank-api', 'tei', '--rerank-depth', '30'];
  const args = ['candidates', index, file, '--out', out, '--json', ...reranking];
  isDown = true;
  const stopped = await agenticR(...args);
  assert.equal(stopped.code, 1);
  assert.match(stopped.stderr, /refused\.json, item 1, search 3: .*status 500.* The same command resumes there\./);
  isDown = false;
  const made = await agenticR(...args);
  assert.equal(made.code, 1, made.stderr);
  const named =
    /refused-candidates\.json: 1 of 3 rounds failed and have no candidates:\n {2}\S*refused\.json, item 1, search 2: .*422/;
  assert.match(made.stderr, named);
  const counts = JSON.parse(made.stdout) as { rounds: number; failed: number; failures: { code: string }[] };
  assert.deepEqual([counts.rounds, counts.failed, counts.failures[0]!.code], [3, 1, 'RERANK_REFUSED']);
  const [{ trajectory }] = JSON.parse(await readFile(out, 'utf8')) as [Item];
  assert.deepEqual(
    trajectory.map(({ candidate_passage_ids: rows }) => rows.length),
    [20, 0, 20],
  );
  const report = JSON.parse(await readFile(`${out}.report.json`, 'utf8')) as { counts: { failed: number } };
  assert.equal(report.counts.failed, 1);
  const over = await agenticR('hand-over', index, out, '--out', join(folder, 'refused-hand-over'));
  assert.equal(over.code, 0, over.stderr);
  assert.match(over.stderr, /Not handed over, because they have no candidates: 1 round\./);
});

test('candidates are the hits of the searched text, the sub-query or question and query', async () => {
  const hits = async (...query: string[]): Promise<number[]> => {
    const found = jsonOf<{ hits: { row: number }[] }>(
      await runTrawl(['search', index, ...query, '--k', '4', '--json']),
    );
    return found.hits.map(({ row }) => row);
  };
  const [{ question, output }] = JSON.parse(await readFile(trajectories, 'utf8')) as [ReturnType<typeof step1Item>];
  const search = output.retrieval_results['0']!;
  for (const [form, expected] of [
    ['searched', await hits(search.query_for_retrieval)],
    ['query', await hits(search.query)],
    ['question', await hits(question)],
    ['question-and-query', await hits(search.query, '--question', question)],
  ] as const) {
    const out = join(folder, `form-${form}.json`);
    const made = await agenticR('candidates', index, trajectories, '--out', out, '--query-form', form, '--k', '4');
    assert.equal(made.code, 0, made.stderr);
    const [item] = JSON.parse(await readFile(out, 'utf8')) as Item[];
    assert.deepEqual(item!.trajectory[0]!.candidate_passage_ids, expected, form);
  }
});

test('candidates of another generation of the index are refused by the hand-over', async () => {
  const out = join(folder, 'generation.json');
  assert.equal((await agenticR('candidates', index, trajectories, '--out', out)).code, 0);
  const report = await readFile(`${out}.report.json`, 'utf8');
  await writeFile(`${out}.report.json`, report.replace(/("generation": ")[^"]*/, '$1another'));
  const refused = await agenticR('hand-over', index, out, '--out', join(folder, 'refused'));
  assert.match(refused.stderr, /generation another.*\[INDEX_FILE_FOREIGN\]/s);
  await rm(`${out}.report.json`);
  assert.equal((await agenticR('hand-over', index, out, '--out', join(folder, 'unknown'))).code, 0);
});

test('candidates killed again and again give the bytes of an undisturbed run', async () => {
  const many = join(folder, 'many.json');
  await writeTrajectories(many, 6000);
  const whole = join(folder, 'whole.json');
  const one = ['--encoder-threads', '1', '--search-threads', '1'];
  assert.equal((await agenticR('candidates', index, many, '--out', whole, ...one)).code, 0);
  const out = join(folder, 'killed.json');
  const args = ['agentic-r', 'candidates', index, many, '--out', out, ...one];
  const progress = (): Promise<string> => readFile(`${out}.progress`, 'utf8').catch(() => '');
  let resumed = 0;
  for (let kills = 0; kills < 8 && !existsSync(out); kills++) {
    const before = await progress();
    const child = spawnTrawl(args);
    const ended = endOf(child);
    // Killed after a new checkpoint, at another moment each time: while it searches, writes or makes the next one.
    while ((await progress()) === before && child.exitCode === null) await sleep(5);
    await sleep(31 * kills);
    child.kill('SIGKILL');
    if (/Resuming after/.test((await ended).stderr)) resumed += 1;
  }
  assert.ok(resumed > 0);
  if (!existsSync(out)) {
    const last = await runTrawl(args);
    assert.equal(last.code, 0, last.stderr);
  }
  assert.deepEqual(await readFile(out), await readFile(whole));
  for (const left of ['partial', 'progress', 'lock']) assert.ok(!existsSync(`${out}.${left}`), left);
});

test('SIGTERM ends the search of candidates with the exit code for resumable work', async () => {
  const out = join(folder, 'stopped.json');
  const many = join(folder, 'many.json');
  await writeTrajectories(many, 12_000);
  const child = spawnTrawl(['agentic-r', 'candidates', index, many, '--out', out, '--encoder-threads', '1']);
  const ended = endOf(child);
  while (!existsSync(`${out}.progress`) && child.exitCode === null) await sleep(5);
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  assert.equal(code, 75, stderr);
  assert.match(stderr, /Stopped\. The same command resumes\. \[CANCELLED\]/);
  assert.ok(!existsSync(out));
  const resumed = await agenticR('candidates', index, many, '--out', out);
  assert.equal(resumed.code, 0);
  assert.match(resumed.stderr, /Resuming after [\d,]+ trajectories/);
});

test('another input, k or index than that of the killed run is refused', async () => {
  const out = join(folder, 'differs.json');
  const progress = `${out}.progress`;
  await writeFile(`${out}.partial`, '[');
  const record = { format: 'trawl-output', version: 1, settings: { k: 19 }, bytes: [1], finished: false, state: null };
  await writeFile(progress, JSON.stringify(record));
  const refused = await agenticR('candidates', index, trajectories, '--out', out);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /k was 19 and is 20.*begin again with --restart.*\[OUTPUT_DIFFERS\]/s);
  const anew = await agenticR('candidates', index, trajectories, '--out', out, '--restart');
  assert.equal(anew.code, 0, anew.stderr);
  assert.doesNotMatch(anew.stderr, /Resuming/);
});

test('wrong command lines are refused with what is expected', async () => {
  for (const [args, message] of [
    [[], /<action> is missing/],
    [['mine', 'a'], /Unknown action trawl agentic-r mine; expected one of candidates, hand-over, check, construct/],
    [['candidates', index], /Expected trawl agentic-r candidates <index> <file>, got 1 arguments/],
    [['check', 'a', 'b'], /Expected trawl agentic-r check <candidates>, got 2/],
    [['candidates', index, trajectories], /needs --out, such as/],
    [
      ['candidates', index, trajectories, '--out', 'a', '--any-generation'],
      /--any-generation has no effect without --records: trajectories name no generation/,
    ],
    [
      ['candidates', index, trajectories, '--out', 'a', '--questions', 'q'],
      /--questions has no effect without --records/,
    ],
    [['construct', trajectories, '--local', 'a'], /construct needs --out/],
    [
      ['construct', trajectories, '--out', 'a', '--k', '5'],
      /--k has no effect on trawl agentic-r construct; it is an option of candidates/,
    ],
    [['check', trajectories, '--seed', '5', '--local', 'a'], /--seed has no effect on trawl agentic-r check/],
    [['check', trajectories], /Expected --local FILE, --global FILE or both/],
    [
      ['construct', trajectories, '--out', 'a', '--local', 'a', '--threshold', '60'],
      /--threshold is "60"; expected a number from 0 to 1/,
    ],
    [['construct', trajectories, '--out', 'a', '--local', 'a', '--exclude-duplicates'], /need --passages FILE/],
    [['construct', trajectories, '--out', 'a', '--local', 'a', '--passages', 'p'], /--passages has no effect without/],
    [['candidates', index, trajectories, '--out', 'a', '--k1', '1'], /--k1 has no effect without --mode bm25/],
  ] as const) {
    const ended = await agenticR(...args);
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stderr, message);
  }
  const absent = await agenticR('candidates', index, join(folder, 'absent.json'), '--out', join(folder, 'a.json'));
  assert.match(absent.stderr, /Cannot read .*absent\.json: no such file.*\[CORPUS_NOT_FOUND\]/s);
  const other = await agenticR('candidates', index, SAMPLE_PASSAGES, '--out', join(folder, 'a.json'));
  assert.match(other.stderr, /passages\.jsonl:1: "question" is missing.*\[CORPUS_BAD_LINE\]/s);
});
