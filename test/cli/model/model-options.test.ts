import assert from 'node:assert/strict';
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../../src/base/package-root.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from '../run-trawl.ts';

interface Manifest {
  readonly dimension: number;
  readonly model: {
    readonly pooling: string;
    readonly prefixes: object;
    readonly maxTokens: { readonly query: number; readonly passage: number };
    readonly overrides?: readonly string[];
    readonly queryTemplate?: string;
    readonly fullDimension?: number;
  };
  readonly modelLocation?: string;
}

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest;

test('model options of a build are kept in the manifest, and searches use them', async (t) => {
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
  assert.match(stderr, /set on the command line: dimension, maxPassageTokens, maxQueryTokens, pooling, queryPrefix/);
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

test('a query template of a build is kept in the manifest, and searches compose their queries by it', async (t) => {
  const cwd = await tempFolder(t);
  const made = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'ix', '--query-template', 'question-history-query'], {
    cwd,
  });
  assert.equal(made.code, 0, made.stderr);
  const { model } = manifestOf(join(cwd, 'ix'));
  assert.deepEqual([model.queryTemplate, model.overrides], ['question-history-query', ['queryTemplate']]);
  const search = async (query: string, ...args: string[]) => {
    const { hits, tokens } = jsonOf<{ hits: object[]; tokens: number }>(
      await runTrawl(['search', 'ix', query, '--json', ...args], { cwd }),
    );
    return { hits, tokens };
  };
  const parts = ['--question', 'Which river?', '--history', 'Vienna', '--history', 'Danube'];
  assert.deepEqual(
    await search('its length', ...parts),
    await search('Which river? [SEP] Vienna [SEP] Danube [SEP] its length'),
  );
  assert.deepEqual(
    await search('its length', ...parts, '--query-template', 'history-query'),
    await search('Vienna [SEP] Danube [SEP] its length'),
  );
  assert.match((await runTrawl(['inspect', 'ix'], { cwd })).stdout, /template +question-history-query/);
});

test('model options that the model does not support are usage errors', async (t) => {
  const cwd = await tempFolder(t);
  for (const [args, message] of [
    [['--dimension', '257'], /dimension is 257; it must be a whole number from 1 to 256/],
    [['--pooling', 'max'], /mean/],
    [['--precision', 'float16'], /has no graph of precision float16; it has int8.*--force --precision int8,float16\./],
    [['--device', 'gpu'], /expected cpu, cuda/],
  ] as const) {
    const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'ix', ...args], { cwd });
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, message);
  }
});

test('an index stores the path of its model, and finds the model by name if the path is gone', async (t) => {
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
  assert.equal(manifests[0], manifests[1], 'equal builds have equal manifests');
  const search = () => runTrawl(['search', 'a', 'bridge', '--json'], { cwd });
  assert.equal((await search()).code, 0);
  renameSync(join(cwd, 'elsewhere/mine'), join(cwd, 'elsewhere/gone'));
  assert.equal((await search()).code, 0, 'the manifest has the name of a packaged model');
  cpSync(join(cwd, 'elsewhere/gone'), join(cwd, 'elsewhere/mine'), { recursive: true });
  rmSync(join(cwd, 'elsewhere/mine/tokenizer.json'));
  const broken = await search();
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /tokenizer\.json is missing/);
});

test('an index of a model that was named is searched from any folder, unless the model comes with Trawl', async (t) => {
  const cwd = await tempFolder(t);
  const mine = join(cwd, 'models/mine');
  cpSync(join(packageRoot, 'models/token-average-256'), mine, { recursive: true });
  const description = readFileSync(join(mine, 'trawl-model.json'), 'utf8');
  writeFileSync(join(mine, 'trawl-model.json'), description.replace('"token-average-256"', '"mine"'));
  const build = async (model: string, out: string): Promise<string | undefined> => {
    const { code, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--model', model, '--out', out], { cwd });
    assert.equal(code, 0, stderr);
    return manifestOf(join(cwd, out)).modelLocation;
  };
  assert.equal(await build('mine', 'named'), '../models/mine');
  assert.equal(await build('token-average-256', 'packaged'), undefined);
  const found = await runTrawl(['search', join(cwd, 'named'), 'bridge', '--json'], { cwd: await tempFolder(t) });
  assert.equal(found.code, 0, found.stderr);
});

test('doctor says whether CUDA can be used, with the reason', async (t) => {
  const cwd = await tempFolder(t);
  const { cuda } = jsonOf<{ cuda: { installed: boolean; reason: string } }>(
    await runTrawl(['doctor', '--json'], { cwd }),
  );
  assert.equal(typeof cuda.installed, 'boolean');
  assert.ok(cuda.reason.length > 20);
  assert.match((await runTrawl(['doctor'], { cwd })).stdout, /CUDA {10}/);
});
