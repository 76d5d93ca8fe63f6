import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Comparison, comparedResults } from '../../../bench/reproduce/compared-results.ts';
import { comparisonReport, reproduce } from '../../../bench/reproduce/reproduce.ts';
import { REPRODUCTIONS } from '../../../bench/reproduce/reproductions.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const signal = new AbortController().signal;

test('the quality of the sample corpus is measured again within its tolerance', async () => {
  const { report, ok } = await reproduce('sample-quality', { write: false, signal });
  assert.ok(ok, report);
  assert.match(report, /sample-quality: 9 of 9 figures are within their tolerance/);
});

test('every recorded result has figures under different names, which equal themselves, and no path leads nowhere', () => {
  const found = new Map<string, boolean>();
  for (const [name, { compare }] of Object.entries(REPRODUCTIONS)) {
    const result = JSON.parse(readFileSync(join(packageRoot, 'bench', 'results', `${name}.json`), 'utf8'));
    const compared = comparedResults(compare, result, result);
    assert.ok(compared.length > 2 && compared.every(({ within }) => within), name);
    assert.equal(new Set(compared.map((one) => one.name)).size, compared.length, `${name}: names differ`);
    // A result may lack what another one of its kind has.
    for (const path of compare.flatMap(({ within }) => Object.keys(within))) {
      found.set(path, found.get(path) === true || compared.some((one) => one.name.endsWith(`: ${path}`)));
    }
  }
  assert.deepEqual(
    [...found].filter(([, isFound]) => !isFound),
    [],
  );
});

test('a figure that differs too much, and one that is missing, are named', () => {
  const compare: Comparison[] = [
    { each: 'rows[engine!=trawl]', name: '{engine}', within: { ratio: '× 2.5', recall: '± 0.002' } },
    { each: '', name: 'all', within: { wrong: '=', 'server.state': '=' } },
  ];
  const faiss = { engine: 'faiss', ratio: 4, recall: 0.9 };
  const recorded = {
    rows: [{ engine: 'trawl', ratio: 1 }, faiss, { engine: 'numpy', ratio: 7 }],
    ...{ wrong: 0, server: { state: 'passed' } },
  };
  const outcomes = (found: object): unknown[] =>
    comparedResults(compare, recorded, { ...recorded, ...found }).map(({ name, within }) => [name, within]);
  const now = (ratio: number, recall: number): object => ({ rows: [{ ...faiss, ratio, recall }] });
  assert.deepEqual(outcomes(now(9.9, 0.9015)), [
    ['faiss: ratio', true],
    ['faiss: recall', true],
    ['numpy: ratio', false],
    ['all: wrong', true],
    ['all: server.state', true],
  ]);
  assert.deepEqual(outcomes(now(10.1, 0.8975)).slice(0, 2), [
    ['faiss: ratio', false],
    ['faiss: recall', false],
  ]);
  assert.deepEqual(outcomes(now(1.5, 0.9)).slice(0, 1), [['faiss: ratio', false]]);
  assert.deepEqual(outcomes({ wrong: 1, server: { state: 'failed' } }).slice(-2), [
    ['all: wrong', false],
    ['all: server.state', false],
  ]);
  const report = comparisonReport('x', comparedResults(compare, recorded, { ...recorded, ...now(12, 0.9) }));
  assert.match(report, /NO \| faiss: ratio +\| +4 \| +× 2\.5 \| +12 \|/);
  assert.match(report, /missing \| numpy: ratio/);
  assert.match(report, /3 of 5 figures/);
});

test('what has not been recorded is not measured to be compared with nothing', async (t) => {
  const folder = await tempFolder(t);
  await assert.rejects(reproduce('bench-medium', { write: false, signal, folder }), {
    code: 'USAGE',
    message: /bench-medium\.json does not exist, .*npm run reproduce -- bench-medium --write records it/,
  });
});

test('an unknown name is refused with the names that can be reproduced', async () => {
  await assert.rejects(reproduce('nothing', { write: false, signal }), {
    code: 'USAGE',
    message: /"nothing" cannot be reproduced\.[\s\S]*sample-quality/,
  });
});
