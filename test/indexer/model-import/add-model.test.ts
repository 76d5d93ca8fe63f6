import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type AddOptions, addModel } from '../../../indexer/model-import/add-model.ts';
import { readModelFolder, verifyModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../../helpers/tiny-checkpoint.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

async function checkpoint(t: TestContext, name: string, seed: number): Promise<string> {
  const folder = join(await tempFolder(t), name);
  for (const [path, content] of Object.entries(tinyCheckpoint(seed))) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

function add(options: Partial<AddOptions> & Pick<AddOptions, 'source' | 'out'>, onStep: () => void = () => {}) {
  const nothing = (): void => {};
  return addModel({
    name: undefined,
    precisions: ['float32'],
    pooling: undefined,
    force: false,
    keepSource: false,
    signal: new AbortController().signal,
    progress: { download: nothing, step: onStep, note: nothing },
    ...options,
  });
}

test('adding a model while it is being added is refused, even with --force, and the first addition succeeds', async (t) => {
  const [one, two] = [await checkpoint(t, 'tiny', 1), await checkpoint(t, 'tiny', 2)];
  const out = join(await tempFolder(t), 'models', 'tiny');
  const locked = trawlError('MODEL_LOCKED', /working on .*models.tiny/);
  for (const force of [false, true]) {
    let second: Promise<void> | undefined;
    await add({ source: one, out, force }, () => {
      second ??= assert.rejects(add({ source: two, out, force: true }), locked);
    });
    assert.ok(second);
    await second;
    await verifyModelFolder(await readModelFolder(out));
    assert.deepEqual((await readdir(join(out, '..'))).sort(), ['.download', 'tiny']);
    assert.deepEqual(await readdir(join(out, '..', '.download')), []);
  }
  const { weightsSha256 } = JSON.parse(await readFile(join(out, 'trawl-model.json'), 'utf8')) as Record<string, string>;
  await add({ source: two, out, force: true });
  const after = JSON.parse(await readFile(join(out, 'trawl-model.json'), 'utf8')) as Record<string, string>;
  assert.notEqual(after.weightsSha256, weightsSha256, 'the first addition has released its lock');
});
