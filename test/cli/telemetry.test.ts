import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { endOf, fileFolder, sampleIndex, spawnTrawl } from './run-trawl.ts';

test('onnxruntime’s telemetry is off: it writes no identifier and no database to the home folder', async (t) => {
  const index = await sampleIndex(await fileFolder());
  const home = await tempFolder(t);
  const temporary = join(home, 'tmp');
  mkdirSync(temporary);
  // onnxruntime turns telemetry off by itself if one of the CI variables is set.
  const withoutCi = { CI: undefined, TF_BUILD: undefined, GITHUB_ACTIONS: undefined, XDG_CACHE_HOME: undefined };
  const child = spawnTrawl(['search', index, 'designer of the Brooklyn Bridge'], {
    env: { ...withoutCi, HOME: home, TMPDIR: temporary },
  });
  const { code, stderr } = await endOf(child);
  assert.equal(code, 0, stderr);
  const found = readdirSync(home, { recursive: true }) as string[];
  assert.deepEqual(
    found.filter((path) => /microsoft|onnxruntime|mat-debug|deviceid/i.test(path)),
    [],
  );
});
