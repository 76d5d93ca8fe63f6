import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { endOf, fileFolder, runTrawl, spawnTrawl } from '../cli/run-trawl.ts';
import { type FaultLibrary, faultLibrary } from '../helpers/fault-library.ts';
import { QUESTIONS, writePlantedCorpus } from './mining-corpus.ts';

/** A few of the moments at which a run changes files. Each takes two runs of the program. */
const MOMENTS = 6;

const folder = await fileFolder();
const index = join(folder, 'index');
const library = faultLibrary(folder);
const skip = 'missing' in library ? library.missing : false;
const { environment, count } = library as FaultLibrary;
/** Changes of files in an undisturbed run. */
let calls = 0;

before(async () => {
  const corpus = writePlantedCorpus(folder);
  const { code, stderr } = await runTrawl(['index', corpus, '--out', index, '--quiet']);
  assert.equal(code, 0, stderr);
});

/** Ranks to 2,000 make batches of 8 queries, so that there are 19 checkpoints. */
function command(out: string, ...more: readonly string[]): string[] {
  const chosen = ['--range-max', '2000', '--sampling-strategy', 'random', '--num-negatives', '5'];
  return ['mine', index, '--queries', QUESTIONS, '--out', out, '--format', 'triplet', ...chosen, ...more, '--quiet'];
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
  assert.ok(calls > 100, `${calls} calls`);
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

test('an unfinished run is not continued with other settings or another input, but replaced with --overwrite', {
  skip,
}, async () => {
  const { run, out } = newRun('differs');
  const queries = join(folder, 'queries-copy.jsonl');
  copyFileSync(QUESTIONS, queries);
  const env = environment({ under: run, at: middle(), do: 'kill' });
  assert.equal((await endOf(spawnTrawl(command(out), { env }))).signal, 'SIGKILL');
  const other = await runTrawl(command(out, '--seed', '1'));
  assert.equal(other.code, 1);
  assert.match(other.stderr, /unfinished run with another seed: 0, now 1.*\[BUILD_DIFFERS\]/s);
  const more = await runTrawl(command(out, '--queries', join(folder, 'planted.jsonl')));
  assert.equal(more.code, 1);
  // A copy of the input is the same input.
  const copied = command(out).map((arg) => (arg === QUESTIONS ? queries : arg));
  const overwritten = await runTrawl([...command(out, '--seed', '1'), '--overwrite']);
  assert.equal(overwritten.code, 0, overwritten.stderr);
  assert.equal((await runTrawl([...copied, '--overwrite'])).code, 0);
  assert.equal(contentOf(run)['rows.jsonl'], contentOf(join(folder, 'undisturbed'))['rows.jsonl']);
});
