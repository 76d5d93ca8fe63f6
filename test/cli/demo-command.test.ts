import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { endOf, postJson, spawnTrawl } from './run-trawl.ts';

test('trawl demo builds and serves the sample whatever a configuration file and the environment say of index and serve', async (t) => {
  const folder = await tempFolder(t);
  const config = { index: { model: 'nope' }, serve: { mode: 'bm25' }, demo: { out: join(folder, 'demo') } };
  await writeFile(join(folder, 'trawl.config.json'), JSON.stringify(config));
  const child = spawnTrawl(['demo', '--port', '0', '--json'], {
    cwd: folder,
    env: { TRAWL_MODEL: 'nothing', TRAWL_BM25: 'perhaps' },
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = endOf(child);
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (line: string) => resolve((JSON.parse(line) as { url: string }).url));
    void ended.then(({ stderr }) => reject(new Error(stderr)));
  });
  const { status } = await postJson(url, { queries: ['who designed the Eiffel Tower'] });
  assert.equal(status, 200);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

test('trawl demo names --out where the folder of the index cannot be made', async (t) => {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'file'), '');
  const { code, stderr } = await endOf(spawnTrawl(['demo', '--out', join(folder, 'file', 'below', 'demo')]));
  assert.equal(code, 1);
  assert.match(
    stderr,
    /below cannot be written: a part of the path is a file\. Name another folder for the index with --out\. \[OUTPUT_NOT_WRITABLE\]/,
  );
});
