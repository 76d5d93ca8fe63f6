import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { BUNDLE_FILES } from '../../../training/replay/bundle-manifest.ts';
import { writeBundle } from '../../../training/replay/write-bundle.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { buildSampleIndex } from '../../helpers/sample-index.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** As many records as there are between two reports of progress. */
const RECORDS = 10_000;

test('a bundle whose file of rows cannot be opened leaves no thread of the index behind', {
  skip: process.platform !== 'linux' && 'needs /proc/self/task',
}, async (t) => {
  const folder = await tempFolder(t);
  const index = await buildSampleIndex(folder);
  const { generation } = openIndexDirectory(index).manifest;
  const records = join(folder, 'calls.jsonl');
  writeFileSync(records, recordLine('a query', { generation }).repeat(RECORDS));
  const out = join(folder, 'bundle');
  const threads = (): number => readdirSync('/proc/self/task').length;
  const before = threads();
  const onProgress = (): void => {
    mkdirSync(join(`${out}.partial`, BUNDLE_FILES.rows), { recursive: true });
  };
  await assert.rejects(
    writeBundle({ records: [records], index, out, onProgress }),
    trawlError('OUTPUT_NOT_WRITABLE', /it is a folder/),
  );
  assert.ok(!existsSync(out) && !existsSync(`${out}.partial`));
  // The thread of the passages has ended as soon as its store is closed, but for the operating system.
  for (let i = 0; i < 100 && threads() > before; i++) await sleep(20);
  assert.ok(threads() <= before, `${threads()} threads, ${before} before`);
});

test('a bundle that cannot be written says why, with the path as given, also if the folder cannot be removed then', async (t) => {
  const folder = await tempFolder(t);
  const index = await buildSampleIndex(folder);
  const { generation } = openIndexDirectory(index).manifest;
  const records = join(folder, 'calls.jsonl');
  writeFileSync(records, recordLine('a query', { generation }).repeat(RECORDS));
  const out = `${folder}/./bundle`;
  const onProgress = (): void => {
    mkdirSync(join(`${out}.partial`, BUNDLE_FILES.rows), { recursive: true });
    t.mock.method(promises, 'rm', async () => Promise.reject(Object.assign(new Error('busy'), { code: 'EBUSY' })));
    syncBuiltinESMExports();
  };
  const error: unknown = await writeBundle({ records: [records], index, out, onProgress }).catch((reason) => reason);
  t.mock.restoreAll();
  syncBuiltinESMExports();
  assert.ok(trawlError('OUTPUT_NOT_WRITABLE', /\/\.\/bundle cannot be written: it is a folder/)(error as Error));
});
