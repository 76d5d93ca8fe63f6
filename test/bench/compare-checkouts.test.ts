import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ComparedFigure, compare, comparisonTable, type Round } from '../../bench/comparison.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const PROGRAM = join(packageRoot, 'scripts', 'compare-checkouts.mjs');

function serveRound(old: readonly number[], after: readonly number[]): Round {
  const records = (values: readonly number[], engine: string) =>
    values.map((queriesPerS) => ({ case: 'serve', load: 'rollouts', engine, queriesPerS, errors: 0 }));
  return { old: records(old, 'trawl'), new: records(after, 'trawl, renamed') };
}

test('figures are medians over the rounds, with the gain of each round', () => {
  const [first, errors, second] = compare('serve', [
    serveRound([100, 10], [110, 5]),
    serveRound([100, 10], [90, 5]),
    serveRound([200, 10], [400, 5]),
  ]);
  assert.deepEqual(first, {
    record: 'rollouts',
    figure: 'queriesPerS',
    better: 'higher',
    old: 100,
    new: 110,
    gains: [1.1, 0.9, 2],
  });
  assert.deepEqual([errors!.figure, errors!.old, errors!.gains], ['errors', 0, []]);
  assert.deepEqual([second!.record, second!.gains], ['rollouts (2)', [0.5, 0.5, 0.5]]);
});

test('for times and bytes the gain is old over new, and a figure that one version lacks is left out', () => {
  const flat = (medianMs: number, rest: object) => [{ case: 'flat/q1', medianMs, ...rest }];
  const compared = compare('flat', [{ old: flat(20, { p95Ms: 25 }), new: flat(10, {}) }]);
  assert.deepEqual(
    compared.map(({ figure, gains }) => [figure, gains]),
    [['medianMs', [2]]],
  );
  assert.match(comparisonTable(compared), /medianMs \| flat\/q1 \|\s+20\.0 \|\s+10\.0 \| 2\.00 × \|/);
});

test('two checkouts are measured alternately, in another order each round', async (t) => {
  const folder = await tempFolder(t);
  const out = join(folder, 'result.json');
  const own = ['--old', packageRoot, '--rounds', '2', '--cache', folder, '--out', out];
  const small = ['--rows', '500', '--dimension', '16', '--queries', '1', '--runs', '1'];
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...own, 'flat', ...small], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(stderr.match(/Round \d of 2, \w+/g), [
    'Round 1 of 2, old',
    'Round 1 of 2, new',
    'Round 2 of 2, new',
    'Round 2 of 2, old',
  ]);
  assert.match(stdout, /medianMs \| flat\/500x16\/float32\/k10\/q1/);
  const written = JSON.parse(await readFile(out, 'utf8')) as { compared: ComparedFigure[]; rounds: Round[] };
  assert.equal(written.rounds.length, 2);
  assert.equal(written.rounds[0]!.new.length, 1);
  assert.ok(written.compared.every(({ gains }) => gains.length === 2));
});

test('a missing checkout and a case that fails are errors', async (t) => {
  const run = (...args: string[]) => spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });
  const withoutOld = run('flat');
  assert.deepEqual([withoutOld.status, withoutOld.stdout], [2, '']);
  assert.match(withoutOld.stderr, /^Usage: .*--old DIR/);
  assert.equal(run('--old', packageRoot).status, 2);
  const failing = run('--old', packageRoot, '--cache', await tempFolder(t), 'flat', '--rows', '0');
  assert.equal(failing.status, 1);
  assert.match(failing.stderr, /bench flat --rows 0 .* ended with exit code 2/);
});
