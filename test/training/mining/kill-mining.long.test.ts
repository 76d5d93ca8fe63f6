import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { endOf, fileFolder, runTrawl, spawnTrawl } from '../../cli/run-trawl.ts';
import { type FaultLibrary, faultLibrary } from '../../helpers/fault-library.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { QUESTIONS, questions, writePlantedCorpus } from './mining-corpus.ts';

/** A few of the moments at which a run changes files. Each takes two runs of the program. */
const MOMENTS = 3;

const folder = await fileFolder();
const index = join(folder, 'index');
/** The first questions of the sample. */
const asked = join(folder, 'asked.jsonl');
const library = faultLibrary(folder);
const skip = 'missing' in library ? library.missing : false;
const { environment, count } = library as FaultLibrary;
/** Changes of files in an undisturbed run. */
let calls = 0;

before(async () => {
  writeFileSync(asked, readFileSync(QUESTIONS, 'utf8').split('\n').slice(0, 48).join('\n'));
  const corpus = writePlantedCorpus(folder);
  const { code, stderr } = await runTrawl(['index', corpus, '--out', index, '--quiet']);
  assert.equal(code, 0, stderr);
});

/** Ranks to 2,000 make batches of 8 queries, so that there are 6 checkpoints. */
function command(out: string, ...more: readonly string[]): string[] {
  const chosen = ['--range-max', '2000', '--sampling-strategy', 'random', '--num-negatives', '5'];
  return ['mine', index, '--queries', asked, '--out', out, '--format', 'triplet', ...chosen, ...more, '--quiet'];
}

/** A change of a file after the input was read. */
function middle(): number {
  return Math.round(0.6 * calls);
}

function contentOf(run: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(run)
      .sort()
      .map((name) => [name, readFileSync(join(run, name), 'utf8').replaceAll(run, 'RUN')]),
  );
}

function newRun(name: string): { readonly run: string; readonly out: string } {
  const run = join(folder, name);
  mkdirSync(run);
  return { run, out: join(run, 'rows.jsonl') };
}

test('a run that is killed at any change of a file resumes to the bytes of an undisturbed one', { skip }, async (t) => {
  const undisturbed = newRun('undisturbed');
  const counted = join(folder, 'calls');
  const env = environment({ under: undisturbed.run, count: counted });
  const ended = await endOf(spawnTrawl(command(undisturbed.out), { env }));
  assert.equal(ended.code, 0, ended.stderr);
  const expected = contentOf(undisturbed.run);
  assert.deepEqual(Object.keys(expected), ['rows.jsonl', 'rows.jsonl.origins.jsonl', 'rows.jsonl.report.json']);
  calls = count(counted);
  assert.ok(calls > 40, `${calls} calls`);
  // Evenly over the run, and the last ones, which give the files their names.
  const moments = Array.from({ length: MOMENTS }, (_, i) =>
    i < 2 ? Math.round(1 + ((i + 0.5) * calls) / 2) : calls - 2 * (MOMENTS - 1 - i),
  );
  let killed = 0;
  for (const at of moments) {
    const { run, out } = newRun(`kill-${at}`);
    const first = await endOf(spawnTrawl(command(out), { env: environment({ under: run, at, do: 'kill' }) }));
    if (first.signal === 'SIGKILL') killed++;
    const second = await endOf(spawnTrawl(command(out)));
    // After its last rename the rows are there, and the command says so unless its work file is left.
    if (!/\[OUTPUT_EXISTS\]/.test(second.stderr)) assert.equal(second.code, 0, `at ${at}: ${second.stderr}`);
    assert.deepEqual(contentOf(run), expected, `killed at call ${at} of ${calls}`);
  }
  t.diagnostic(`${killed} kills among ${calls} calls`);
  assert.ok(killed >= MOMENTS - 2);
});

test('a Parquet file has the bytes of an undisturbed one after a full disk and a kill', { skip }, async () => {
  const [whole, broken] = ['parquet', 'parquet-broken'].map((name) => join(newRun(name).run, 'rows.parquet'));
  const ended = await runTrawl(command(whole!));
  assert.equal(ended.code, 0, ended.stderr);
  const run = join(folder, 'parquet-broken');
  for (const { fault, code } of [
    // Amid the rows, which wait for the rest of their row group.
    { fault: { file: 'rows.parquet.origins.jsonl.partial', at: 20, do: 28 }, code: 'DISK_FULL' },
    // At the row group.
    { fault: { file: 'rows.parquet.partial', at: 1, do: 28 }, code: 'DISK_FULL' },
    { fault: { file: 'rows.parquet.partial', at: 1, do: 'kill' }, code: undefined },
  ] as const) {
    const env = environment({ under: run, calls: 'write', ...fault });
    const failed = await endOf(spawnTrawl(command(broken!), { env }));
    if (code === undefined) assert.equal(failed.signal, 'SIGKILL');
    else assert.match(failed.stderr, new RegExp(`\\[${code}\\]`));
    assert.ok(readdirSync(run).includes('rows.parquet.work'), 'there is something to resume');
    assert.ok(!readdirSync(run).includes('rows.parquet'));
  }
  const resumed = await runTrawl(command(broken!));
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.ok(readFileSync(broken!).equals(readFileSync(whole!)));
  assert.deepEqual(contentOf(run), contentOf(join(folder, 'parquet')));
});

test('SIGTERM stops a run with the exit code that asks to run it again', { skip }, async () => {
  const { run, out } = newRun('term');
  const env = environment({ under: run, at: middle(), do: 'term' });
  const ended = await endOf(spawnTrawl([...command(out), '--json'], { env }));
  assert.equal(ended.code, 75, ended.stderr);
  assert.match(ended.stderr, /The same command resumes/);
  const resumed = await runTrawl(command(out));
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(contentOf(run), contentOf(join(folder, 'undisturbed')));
});

test('an unfinished run is not continued with other settings or another input, but dropped with --restart', {
  skip,
}, async () => {
  const { run, out } = newRun('differs');
  const queries = join(folder, 'queries-copy.jsonl');
  copyFileSync(asked, queries);
  const env = environment({ under: run, at: middle(), do: 'kill' });
  assert.equal((await endOf(spawnTrawl(command(out), { env }))).signal, 'SIGKILL');
  const other = await runTrawl(command(out, '--seed', '1'));
  assert.equal(other.code, 1);
  assert.match(
    other.stderr,
    /unfinished run with other settings: seed was 0 and is 1\..*--restart\. \[OUTPUT_DIFFERS\]/s,
  );
  const more = await runTrawl(command(out, '--queries', join(folder, 'planted.jsonl')));
  assert.equal(more.code, 1);
  // A copy of the input is the same input.
  const copied = command(out).map((arg) => (arg === asked ? queries : arg));
  const restarted = await runTrawl([...command(out, '--seed', '1'), '--restart']);
  assert.equal(restarted.code, 0, restarted.stderr);
  assert.equal((await runTrawl([...copied, '--restart'])).code, 0);
  assert.equal(contentOf(run)['rows.jsonl'], contentOf(join(folder, 'undisturbed'))['rows.jsonl']);
});

test('an unfinished run is not continued with any other setting that decides what is written', { skip }, async () => {
  const { run, out } = newRun('settings');
  const env = environment({ under: run, at: middle(), do: 'kill' });
  assert.equal((await endOf(spawnTrawl(command(out), { env }))).signal, 'SIGKILL');
  const before = contentOf(run);
  const list = join(folder, 'excluded.jsonl');
  writeFileSync(list, '{"id": "1", "question": "A question that is not asked"}\n');
  const qrels = join(folder, 'qrels.txt');
  writeFileSync(qrels, 'q-001 0 s-0001 1\n');
  for (const [args, setting] of [
    [['--format', 'labeled-pair'], /format was "triplet" and is "labeled-pair"/],
    [['--num-negatives', '4'], /num_negatives was 5 and is 4/],
    [['--min-negatives', '2'], /min_negatives was 1 and is 2/],
    [['--range-min', '2'], /range_min was 1 and is 2/],
    [['--range-max', '1999'], /range_max was 2000 and is 1999/],
    [['--max-score', '0.9'], /max_score was not set and is 0\.9/],
    [['--min-score', '-1'], /min_score was not set and is -1/],
    [['--absolute-margin', '0'], /absolute_margin was not set and is 0/],
    [['--relative-margin', '0.05'], /relative_margin was not set and is 0\.05/],
    [['--sampling-strategy', 'top'], /sampling_strategy was "random" and is "top"/],
    [['--near-duplicate', 'off'], /near_duplicate was 0\.8 and is not set/],
    [['--output-scores'], /output_scores was false and is true/],
    [['--query-form', 'question'], /query_form was "auto" and is "question"/],
    [['--query-template', 'query'], /search was \{\} and is \{"template":"query"\}/],
    [['--exclude-questions', list], /inputs changed/],
    [['--qrels', qrels], /inputs changed/],
  ] as const) {
    const { code, stderr } = await runTrawl(command(out, ...args));
    assert.equal(code, 1, stderr);
    assert.match(stderr, setting);
    assert.match(stderr, /\[OUTPUT_DIFFERS\]/);
  }
  assert.deepEqual(contentOf(run), before);
  // What does not decide it may be another.
  const resumed = await runTrawl(command(out, '--search-threads', '1', '--json'));
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.equal(contentOf(run)['rows.jsonl'], contentOf(join(folder, 'undisturbed'))['rows.jsonl']);
});

test('a run whose partial file is missing or too short starts again, and says so', { skip }, async () => {
  for (const [suffix, damage] of [
    ['', (path: string) => rmSync(path)],
    ['.origins.jsonl', (path: string) => truncateSync(path, 10)],
  ] as const) {
    const { run, out } = newRun(`damaged${suffix}`);
    const env = environment({ under: run, at: middle(), do: 'kill' });
    assert.equal((await endOf(spawnTrawl(command(out), { env }))).signal, 'SIGKILL');
    damage(`${out}${suffix}.partial`);
    const again = await runTrawl(command(out).filter((arg) => arg !== '--quiet'));
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /rows\.jsonl\.work is missing or too short\. Starting again\./);
    assert.deepEqual(contentOf(run), contentOf(join(folder, 'undisturbed')));
  }
});

test('a run over records that grow meanwhile resumes with the queries that it read', { skip }, async () => {
  const records = join(folder, 'calls.jsonl');
  writeFileSync(
    records,
    questions()
      .map(({ question }) => recordLine(question))
      .join(''),
  );
  chmodSync(records, 0o600);
  const args = ['--records', records, '--any-generation'];
  const undisturbed = newRun('records');
  const ended = await runTrawl(command(undisturbed.out, ...args));
  assert.equal(ended.code, 0, ended.stderr);
  const { run, out } = newRun('growing');
  const env = environment({ under: run, at: middle(), do: 'kill' });
  assert.equal((await endOf(spawnTrawl(command(out, ...args), { env }))).signal, 'SIGKILL');
  for (const path of [`${out}.work`, `${out}.partial`, `${out}.origins.jsonl.partial`]) {
    assert.equal(statSync(path).mode & 0o777, 0o600, path);
  }
  appendFileSync(records, recordLine('A question of later'));
  const others = join(folder, 'other-calls.jsonl');
  copyFileSync(records, others);
  const other = await runTrawl(command(out, '--records', others, '--any-generation'));
  assert.match(other.stderr, /unfinished run with other settings: .*records.*\[OUTPUT_DIFFERS\]/s);
  const resumed = await runTrawl(command(out, ...args));
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(contentOf(run), contentOf(undisturbed.run));
});

test('a run is not continued with another precision or in a view whose list has changed', { skip }, async () => {
  const views = join(folder, 'views.json');
  const blocked = join(folder, 'blocked.ids');
  writeFileSync(views, JSON.stringify({ train: { blockIds: 'blocked.ids' } }));
  writeFileSync(blocked, 's-0100\n');
  const { run, out } = newRun('view');
  const inView = command(out, '--views', views, '--view', 'train');
  const env = environment({ under: run, at: middle(), do: 'kill' });
  assert.equal((await endOf(spawnTrawl(inView, { env }))).signal, 'SIGKILL');
  const precision = await runTrawl([...inView, '--precision', 'int8']);
  assert.match(precision.stderr, /unfinished run with other settings: .*precision was .*\[OUTPUT_DIFFERS\]/s);
  writeFileSync(blocked, 's-0100\ns-0101\n');
  const changed = await runTrawl(inView);
  assert.match(changed.stderr, /unfinished run with other settings: view_sha256 changed.*\[OUTPUT_DIFFERS\]/s);
  writeFileSync(blocked, 's-0100\n');
  const resumed = await runTrawl(inView);
  assert.equal(resumed.code, 0, resumed.stderr);
});
