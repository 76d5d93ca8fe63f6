import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { compareExpectations, describeExpectation } from '../../../bench/reproduce/expectation.ts';
import { evalExpectations } from '../../../bench/reproduce/expectations/quality.ts';
import { allExpectations } from '../../../bench/reproduce/expectations/report.ts';
import { compareFiles, comparisonReport, reproduce, reproductionList } from '../../../bench/reproduce/reproduce.ts';
import { REPRODUCTIONS } from '../../../bench/reproduce/reproductions.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { RESULT } from '../report/result.ts';

const signal = new AbortController().signal;

test('the quality of the sample corpus is measured again within its tolerance', async () => {
  const { report, ok } = await reproduce('sample-quality', { write: false, signal });
  assert.ok(ok, report);
  assert.match(report, /sample-quality: 9 of 9 figures are within their tolerance/);
});

test('a figure that differs too much, and one that is missing, are named', async (t) => {
  const folder = await tempFolder(t);
  const [recorded, found] = [join(folder, 'recorded.json'), join(folder, 'found.json')];
  const result = {
    ...{ format: 'trawl-evaluations', version: 1, trawl: '0', date: '2026-11-23' },
    rows: [{ name: 'q', arguments: '', queries: 5, metrics: { 'recall@5': 0.9, 'recall@10': 0.95, 'mrr@10': 0.8 } }],
  };
  await writeFile(recorded, JSON.stringify(result));
  const metrics = { 'recall@5': 0.9015, 'recall@10': 0.8 };
  await writeFile(found, JSON.stringify({ ...result, rows: [{ ...result.rows[0], metrics }] }));
  const sample = REPRODUCTIONS.find(({ name }) => name === 'sample-quality')!;
  const compared = await compareFiles(sample, recorded, found);
  assert.deepEqual(
    compared.map(({ name, within }) => [name, within]),
    [
      ['q: recall@5', true],
      ['q: recall@10', false],
      ['q: mrr@10', false],
    ],
  );
  const report = comparisonReport(sample, compared);
  assert.match(report, /NO \| q: recall@10 +\| +0\.95 ± 0\.002 \| +0\.8 \|/);
  assert.match(report, /missing \| q: mrr@10/);
  assert.match(report, /1 of 3 figures/);
  assert.equal(evalExpectations(result as never).length, 3);
});

test('of a report ratios, recall, memory and wrong answers are compared, not times', () => {
  const expected = allExpectations(RESULT);
  const names = expected.map(({ name }) => name);
  for (const name of [
    'exact search, faiss, 64 queries: time / Trawl',
    'exact search, trawl, 1 queries: bytes',
    'server, lone: × the baseline',
    'server, lone: wrong answers',
    'vectors, faiss-hnsw, efSearch 16: recall',
    'questions, lucene, bm25, library: recall@10',
  ]) {
    assert.ok(names.includes(name), `${name} of ${names.join('; ')}`);
  }
  assert.ok(compareExpectations(expected, expected).every(({ within }) => within));
  const ratio = expected.find(({ name }) => name.endsWith('64 queries: time / Trawl'))!;
  const within = (factor: number): boolean =>
    compareExpectations([ratio], [{ ...ratio, value: ratio.value * factor }])[0]!.within;
  assert.deepEqual([0.3, 0.5, 2, 3].map(within), [false, true, true, false]);
  assert.equal(describeExpectation(ratio), '4, within a factor of 2.5');
});

test('each server of Trawl under rollouts has figures of its own', () => {
  const [lone] =
    RESULT.stages.serve !== undefined && 'result' in RESULT.stages.serve ? RESULT.stages.serve.result.records : [];
  const rollouts = ['trawl', 'trawl --no-single-flight --cache-bytes 0'].map((engine) => ({
    ...lone!,
    engine,
    load: 'rollouts' as const,
  }));
  const stage = RESULT.stages.serve as { readonly result: object };
  const serve = { ...stage, result: { ...stage.result, records: rollouts } } as never;
  const names = allExpectations({ ...RESULT, stages: { serve } }).map(({ name }) => name);
  assert.deepEqual(names, [
    'server, rollouts, single flight and answer cache: wrong answers',
    'server, rollouts, single flight and answer cache: × the baseline',
    'server, rollouts, neither single flight nor cache: wrong answers',
    'server, rollouts, neither single flight nor cache: × the baseline',
  ]);
});

test('what has not been recorded is listed as such, and is not measured to be compared with nothing', async (t) => {
  const folder = await tempFolder(t);
  assert.match(reproductionList(folder), /bench-medium .*\(29 minutes; not recorded yet\)/);
  await assert.rejects(reproduce('bench-medium', { write: false, signal, folder }), {
    code: 'USAGE',
    message: /bench-medium\.json does not exist: .*npm run reproduce -- bench-medium --write records it/,
  });
});

test('an unknown name is refused with the names that can be reproduced', async () => {
  await assert.rejects(reproduce('nothing', { write: false, signal }), {
    code: 'USAGE',
    message: /"nothing" cannot be reproduced\.[\s\S]*sample-quality/,
  });
});
