import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { endOf, fileFolder, sampleIndex, spawnTrawl } from './run-trawl.ts';

test('onnxruntime reports nothing to anybody: no identifier and no database in the home folder', async (t) => {
  const index = await sampleIndex(await fileFolder());
  const home = await tempFolder(t);
  const temporary = join(home, 'tmp');
  mkdirSync(temporary);
  // onnxruntime keeps still of itself where it takes the machine for one that tests.
  const quiet = { CI: undefined, TF_BUILD: undefined, GITHUB_ACTIONS: undefined, XDG_CACHE_HOME: undefined };
  const child = spawnTrawl(['search', index, 'designer of the Brooklyn Bridge'], {
    env: { ...quiet, HOME: home, TMPDIR: temporary },
  });
  const { code, stderr } = await endOf(child);
  assert.equal(code, 0, stderr);
  const found = readdirSync(home, { recursive: true }) as string[];
  assert.deepEqual(
    found.filter((path) => /microsoft|onnxruntime|mat-debug|deviceid/i.test(path)),
    [],
  );
});
