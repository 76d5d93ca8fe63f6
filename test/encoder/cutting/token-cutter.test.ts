import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../../src/base/package-root.ts';
import { TokenCutter, tokenizerFile } from '../../../src/encoder/cutting/token-cutter.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const FILE = join(packageRoot, 'models', 'token-average-256', 'tokenizer.json');

test('texts are cut on a thread, also several calls at once, and by the name of a model or the path of its tokenizer', async (t) => {
  assert.equal(await tokenizerFile('token-average-256'), FILE);
  assert.equal(await tokenizerFile(FILE), FILE);
  const cutter = new TokenCutter(() => tokenizerFile('token-average-256'));
  t.after(() => cutter.close());
  const answers = await Promise.all([1, 2, 3].map((tokens) => cutter.cut(['the river flows', 'sea'], tokens)));
  assert.deepEqual(
    answers.map((texts) => texts.map(({ text, isCut }) => [text, isCut])),
    [
      [
        ['the', true],
        ['sea', false],
      ],
      [
        ['the river', true],
        ['sea', false],
      ],
      [
        ['the river flows', false],
        ['sea', false],
      ],
    ],
  );
  assert.deepEqual(await cutter.cut([], 1), []);
});

test('a model or file that does not exist, or is no tokenizer, fails each call with its reason', async (t) => {
  await assert.rejects(tokenizerFile('no-such-model'), { code: 'MODEL_NOT_FOUND' });
  const broken = join(await tempFolder(t), 'tokenizer.json');
  writeFileSync(broken, '{"model": 3}');
  for (const [file, code] of [
    [broken, 'MODEL_INVALID'],
    [`${broken}.none.json`, 'MODEL_INVALID'],
  ] as const) {
    const cutter = new TokenCutter(async () => file);
    for (let i = 0; i < 2; i++) await assert.rejects(cutter.cut(['a'], 1), { code });
    await cutter.close();
  }
});

test('an aborted call and the calls of a closed cutter are cancelled', async () => {
  const cutter = new TokenCutter(async () => FILE);
  await assert.rejects(cutter.cut(['a'], 1, AbortSignal.abort()), { code: 'CANCELLED' });
  const abort = new AbortController();
  const waiting = cutter.cut(['a b '.repeat(1000)], 1500, abort.signal);
  setImmediate(() => abort.abort());
  await assert.rejects(waiting, { code: 'CANCELLED' });
  await cutter.close();
  await cutter.close();
  await assert.rejects(cutter.cut(['a'], 1), { code: 'CANCELLED' });
});
