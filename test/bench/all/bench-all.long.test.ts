import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { withoutFolders } from '../../../bench/all/all-file.ts';
import type { AllResult } from '../../../bench/all/all-result.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { runTrawl } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { RESULT } from '../report/result.ts';

const skip = loadKernel().ok ? false : 'the native engine is not built';
const { machine: _measured, ...others } = RESULT.stages;
/** What `trawl bench all --size small` uses where no Python environment has a model. */
const SAMPLE_INPUTS: AllResult['inputs'] = {
  model: 'token-average-256',
  corpus: 'sample/passages.jsonl',
  questions: 'sample/questions.jsonl',
  calls: 'questions and sub-queries of the sample corpus',
};
const UNFINISHED: AllResult = { ...RESULT, threads: 1, inputs: SAMPLE_INPUTS, complete: false, stages: others };
const json = async (path: string): Promise<AllResult> => JSON.parse(await readFile(path, 'utf8')) as AllResult;

test('an unfinished run is resumed: measured stages are kept, missing ones are measured', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const [report, file] = [join(folder, 'report.html'), join(folder, 'report.json')];
  await writeFile(file, JSON.stringify(UNFINISHED));
  const args = ['bench', 'all', '--report', report, '--cache', folder, '--threads', '1'];
  const first = await runTrawl([...args, '--stages', 'machine,flat']);
  assert.match(first.stderr, /machine: measuring/);
  assert.match(first.stderr, /flat: measured before/);
  assert.equal(first.code, 1, 'index failed before');
  assert.match(first.stderr, /index failed: The disk is full/);
  const result = await json(file);
  assert.equal(result.complete, false, 'index has no result');
  assert.deepEqual(result.stages.flat, RESULT.stages.flat);
  const peaks =
    result.stages.machine !== undefined && 'result' in result.stages.machine
      ? result.stages.machine.result.peaks
      : null;
  assert.ok(peaks !== null && peaks.readBytesPerS > 1e8 && peaks.threads === 1);
  assert.match(await readFile(report, 'utf8'), /Trawl benchmark report/);
});

test('the peaks of two threads are measured beside those of one', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const file = join(folder, 'report.json');
  const args = ['bench', 'all', '--report', join(folder, 'report.html'), '--cache', folder, '--stages', 'machine'];
  const ended = await runTrawl([...args, '--threads', '2']);
  assert.equal(ended.code, 0, ended.stderr);
  const { machine } = (await json(file)).stages;
  assert.ok(machine !== undefined && 'result' in machine && machine.result.peaks !== null);
  const { threads, float32ProductsPerS, speedupOfThreads } = machine.result.peaks;
  assert.equal(threads, 2);
  // Some processors have no measured peak. With two threads on one core the figure is 1.
  if (float32ProductsPerS === null) assert.equal(speedupOfThreads, undefined);
  else assert.ok(speedupOfThreads! > 0.3 && speedupOfThreads! < 3, String(speedupOfThreads));
});

test('a complete run is kept by the same command, and one with more stages measures those', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const file = join(folder, 'report.json');
  const { flat } = RESULT.stages;
  await writeFile(
    file,
    JSON.stringify({ ...RESULT, threads: 1, inputs: SAMPLE_INPUTS, complete: true, stages: { flat } }),
  );
  const args = ['bench', 'all', '--report', join(folder, 'report.html'), '--cache', folder, '--threads', '1'];
  const before = await json(file);
  const same = await runTrawl([...args, '--stages', 'flat']);
  assert.equal(same.code, 0, same.stderr);
  assert.match(same.stderr, /flat: measured before \(--restart measures every stage again\)/);
  assert.deepEqual(await json(file), before);
  const more = await runTrawl([...args, '--stages', 'machine']);
  assert.equal(more.code, 0, more.stderr);
  const result = await json(file);
  assert.ok(result.complete);
  assert.deepEqual(Object.keys(result.stages).sort(), ['flat', 'machine']);
  assert.deepEqual(result.stages.flat, flat);
});

test('--from draws a page and measures nothing', async (t) => {
  const folder = await tempFolder(t);
  const [report, file] = [join(folder, 'page.html'), join(folder, 'figures.json')];
  const { index: _failed, ...stages } = RESULT.stages;
  await writeFile(file, JSON.stringify({ ...RESULT, stages }));
  const { code, stdout, stderr } = await runTrawl(['bench', 'all', '--from', file, '--report', report]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /page\.html and .*figures\.json/);
  assert.match(await readFile(report, 'utf8'), /--from figures\.json/);
  assert.deepEqual(await json(file), { ...RESULT, stages });
});

test('files that are no result, results of another size, and half of a pair of files are refused', async (t) => {
  const folder = await tempFolder(t);
  const [report, file] = [join(folder, 'report.html'), join(folder, 'report.json')];
  const refused = async (args: readonly string[], message: RegExp): Promise<void> => {
    const { code, stderr } = await runTrawl(['bench', 'all', '--report', report, '--cache', folder, ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  };
  await refused(['--from', join(folder, 'missing.json')], /missing\.json: cannot be read as JSON/);
  await writeFile(file, '{"format": "other"}');
  await refused([], /format is "other", version undefined; expected "trawl-bench-all" and 1/);
  await writeFile(file, JSON.stringify(UNFINISHED));
  await refused(
    ['--size', 'medium', '--threads', '1'],
    /report\.json was measured with other settings: size small, asked for: medium\. Use the same, name another file/,
  );
  await refused(
    ['--size', 'small', '--threads', '2', '--seed', '3'],
    /threads 1, asked for: 2; seed 1, asked for: 3\. .*--restart/,
  );
  const given = ['--size', 'small', '--threads', '1'];
  await refused(
    [...given, '--corpus', 'my/corpus.jsonl', '--query-texts', 'my/questions.jsonl', '--calls', 'my/calls.jsonl'],
    /corpus sample\/passages\.jsonl, asked for: my\/corpus\.jsonl; questions sample.*; calls .*asked for: my\/calls/,
  );
  await refused([...given, '--model', 'models/other'], /settings: model token-average-256, asked for: other\. Use/);
  assert.deepEqual(await json(file), UNFINISHED, 'a refused run changes nothing');
  await refused(['--corpus', 'x.jsonl'], /needs --corpus, one file of JSON lines, and --query-texts/);
  await refused(['--stages', 'flat,nothing'], /--stages is "nothing"; expected some of machine, flat/);
  await refused(['--rows', '5'], /--rows belongs to/);
});

test('published results have no folders of the machine, wherever checkout and home folder are', () => {
  for (const [checkout, home] of [
    ['/src/trawl', '/home/me'],
    ['/home/me/src/trawl', '/home/me'],
    ['/builds/trawl', '/builds/home'],
  ] as const) {
    const result = { a: [`${checkout}/bench/x`, `1000 vectors of ${dirname(checkout)}/data/y`], b: `${home}/z`, c: 1 };
    assert.deepEqual(
      withoutFolders(result, { checkout, home }),
      { a: ['bench/x', '1000 vectors of ../data/y'], b: '~/z', c: 1 },
      checkout,
    );
  }
  const inHome = { checkout: '/home/me/trawl', home: '/home/me' };
  assert.equal(withoutFolders('/home/me/data/y of /home/me/trawl/bench/x', inHome), '~/data/y of bench/x');
});
