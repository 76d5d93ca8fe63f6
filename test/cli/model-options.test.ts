import assert from 'node:assert/strict';
import { cpSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/package-root.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from './run-trawl.ts';

interface Manifest {
  readonly dimension: number;
  readonly model: {
    readonly pooling: string;
    readonly prefixes: object;
    readonly maxTokens: { readonly query: number; readonly passage: number };
    readonly overrides?: readonly string[];
    readonly fullDimension?: number;
  };
  readonly modelLocation?: string;
}

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest;

test('what is set against a model stands in the manifest, and searching takes it from there', async (t) => {
  const cwd = await tempFolder(t);
  const set = [
    '--pooling',
    'cls',
    '--query-prefix',
    'q: ',
    '--passage-prefix',
    '',
    '--max-query-tokens',
    '7',
    '--max-passage-tokens',
    '128',
    '--dimension',
    '64',
  ];
  const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'ix', ...set], { cwd });
  assert.equal(code, 0, stderr);
  assert.match(
    stderr,
    /set against the model's own description: dimension, maxPassageTokens, maxQueryTokens, pooling, queryPrefix/,
  );
  const { dimension, model } = manifestOf(join(cwd, 'ix'));
  assert.deepEqual(
    [dimension, model.pooling, model.prefixes, model.maxTokens, model.fullDimension],
    [64, 'cls', { query: 'q: ', passage: '' }, { query: 7, passage: 128 }, 256],
  );
  assert.deepEqual(model.overrides, ['dimension', 'maxPassageTokens', 'maxQueryTokens', 'pooling', 'queryPrefix']);
  const found = await runTrawl(['search', 'ix', 'a query that has more than seven tokens', '--json'], { cwd });
  const { tokens, truncated } = jsonOf<{ tokens: number; truncated: boolean }>(found);
  assert.deepEqual([tokens, truncated], [7, true]);
});

test('settings that the model cannot have are the command line’s mistakes', async (t) => {
  const cwd = await tempFolder(t);
  for (const [args, message] of [
    [['--dimension', '257'], /dimension is 257; it must be a whole number from 1 to 256/],
    [['--pooling', 'max'], /mean/],
    [['--precision', 'float16'], /has no graph of precision float16; it has int8/],
    [['--device', 'gpu'], /must be cpu, cuda/],
  ] as const) {
    const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'ix', ...args], { cwd });
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, message);
  }
});

test('an index remembers where a model given by its path lies, and falls back to its name', async (t) => {
  const cwd = await tempFolder(t);
  cpSync(join(packageRoot, 'models/token-average-256'), join(cwd, 'elsewhere/mine'), { recursive: true });
  for (const out of ['a', 'b']) {
    const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--model', './elsewhere/mine', '--out', out], {
      cwd,
    });
    assert.equal(code, 0, stderr);
  }
  assert.equal(manifestOf(join(cwd, 'a')).modelLocation, '../elsewhere/mine');
  const manifests = ['a', 'b'].map((out) => readFileSync(join(cwd, out, 'manifest.json'), 'utf8'));
  assert.equal(manifests[0], manifests[1], 'equal builds are equal');
  const search = () => runTrawl(['search', 'a', 'bridge', '--json'], { cwd });
  assert.equal((await search()).code, 0);
  renameSync(join(cwd, 'elsewhere/mine'), join(cwd, 'elsewhere/gone'));
  assert.equal((await search()).code, 0, 'the name in the manifest is that of a model that comes along');
  cpSync(join(cwd, 'elsewhere/gone'), join(cwd, 'elsewhere/mine'), { recursive: true });
  rmSync(join(cwd, 'elsewhere/mine/tokenizer.json'));
  const broken = await search();
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /tokenizer\.json is missing/);
});

test('doctor says whether CUDA can be used and why not', async (t) => {
  const cwd = await tempFolder(t);
  const { cuda } = jsonOf<{ cuda: { installed: boolean; reason: string } }>(
    await runTrawl(['doctor', '--json'], { cwd }),
  );
  assert.equal(typeof cuda.installed, 'boolean');
  assert.ok(cuda.reason.length > 20);
  assert.match((await runTrawl(['doctor'], { cwd })).stdout, /CUDA {10}/);
});
