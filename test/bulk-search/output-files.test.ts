import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OutputFiles } from '../../bulk-search/output-files.ts';
import { differences } from '../../bulk-search/search-settings.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

const SETTINGS = { 'query file': 'abc', '--k': 5, '--filter': null };
const DONE = { queries: 2, failed: 0, state: { some: 'state' } };

test('a run that ends early resumes behind what it saved, and drops what came after', async (t) => {
  const folder = await tempFolder(t);
  const paths = [join(folder, 'rows.npy'), join(folder, 'scores.npy')];
  const first = await OutputFiles.open(paths, SETTINGS, false);
  assert.equal(first.resumed, undefined);
  await first.append([Buffer.from('saved '), Buffer.from('SAVED ')]);
  await first.save(DONE);
  await first.append([Buffer.from('lost'), Buffer.from('LOST')]);
  await first.close();
  const second = await OutputFiles.open(paths, SETTINGS, false);
  assert.deepEqual(
    { queries: second.resumed!.queries, state: second.resumed!.state, isComplete: second.isComplete },
    { queries: 2, state: { some: 'state' }, isComplete: false },
  );
  await second.append([Buffer.from('end'), Buffer.from('END')]);
  await second.finish({ ...DONE, queries: 3 });
  await second.close();
  assert.deepEqual(
    paths.map((path) => readFileSync(path, 'utf8')),
    ['saved end', 'SAVED END'],
  );
  assert.deepEqual(readdirSync(folder).sort(), ['rows.npy', 'scores.npy']);
});

test('an output stays as it was until the new one is complete, also behind a link', async (t) => {
  const folder = await tempFolder(t);
  const [file, link] = [join(folder, 'real.jsonl'), join(folder, 'link.jsonl')];
  writeFileSync(file, 'old');
  symlinkSync(file, link);
  const output = await OutputFiles.open([link], SETTINGS, false);
  await output.append([Buffer.from('new')]);
  await output.save(DONE);
  assert.equal(readFileSync(link, 'utf8'), 'old');
  await output.finish(DONE);
  await output.close();
  assert.equal(readFileSync(file, 'utf8'), 'new');
  assert.deepEqual(readdirSync(folder).sort(), ['link.jsonl', 'real.jsonl']);
});

test('a run that was killed between its last record and its renames is only completed', async (t) => {
  const folder = await tempFolder(t);
  const paths = [join(folder, 'rows.npy'), join(folder, 'scores.npy')];
  const first = await OutputFiles.open(paths, SETTINGS, false);
  await first.append([Buffer.from('rows'), Buffer.from('scores')]);
  await first.save(DONE);
  await first.close();
  // As after the rename of the first file.
  const record = JSON.parse(readFileSync(`${paths[0]}.progress`, 'utf8')) as object;
  writeFileSync(`${paths[0]}.progress`, JSON.stringify({ ...record, finished: true }));
  writeFileSync(paths[0]!, readFileSync(`${paths[0]}.partial`));
  rmSync(`${paths[0]}.partial`);
  const second = await OutputFiles.open(paths, SETTINGS, false);
  assert.equal(second.isComplete, true);
  await second.finish(DONE);
  await second.close();
  assert.deepEqual(
    paths.map((path) => readFileSync(path, 'utf8')),
    ['rows', 'scores'],
  );
  assert.deepEqual(readdirSync(folder).sort(), ['rows.npy', 'scores.npy']);
});

test('other settings are refused with what differs, until the run is started again', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  const first = await OutputFiles.open([path], SETTINGS, false);
  await first.append([Buffer.from('old')]);
  await first.save(DONE);
  await first.close();
  const other = { 'query file': 'xyz', '--k': 7, '--filter': 'a = 1' };
  await assert.rejects(
    OutputFiles.open([path], other, false),
    trawlError(
      'OUTPUT_DIFFERS',
      /: the query file changed; --k was 5 and is 7; --filter was not set and is "a = 1"\. .*--restart/,
    ),
  );
  const again = await OutputFiles.open([path], other, true);
  assert.equal(again.resumed, undefined);
  await again.append([Buffer.from('new')]);
  await again.finish(DONE);
  await again.close();
  assert.equal(readFileSync(path, 'utf8'), 'new');
});

test('settings that are missing on one side differ', () => {
  assert.deepEqual(differences({ index: 'a', '--tag': 'x' }, { index: 'a' }), ['--tag was "x" and is not set']);
  assert.deepEqual(differences({}, { 'query vectors': 'h' }), ['query vectors was not set and is "h"']);
});

test('a partial file that lost bytes, and a record that is not one, are refused', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  const first = await OutputFiles.open([path], SETTINGS, false);
  await first.append([Buffer.from('0123456789')]);
  await first.save(DONE);
  await first.close();
  truncateSync(`${path}.partial`, 9);
  await assert.rejects(
    OutputFiles.open([path], SETTINGS, false),
    trawlError('OUTPUT_DIFFERS', /lacks bytes.*--restart/),
  );
  rmSync(`${path}.partial`);
  await assert.rejects(OutputFiles.open([path], SETTINGS, false), trawlError('OUTPUT_DIFFERS', /lacks bytes/));
  for (const text of ['', 'null', '{"format":"trawl-bulk-search","version":999}']) {
    writeFileSync(`${path}.progress`, text);
    await assert.rejects(
      OutputFiles.open([path], SETTINGS, false),
      trawlError('OUTPUT_DIFFERS', /not a record of a bulk search/),
    );
  }
});

test('a second run of the same output is refused while the first one writes', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'hits.jsonl');
  const first = await OutputFiles.open([path], SETTINGS, false);
  await assert.rejects(OutputFiles.open([path], SETTINGS, true), trawlError('OUTPUT_EXISTS', /Another run is writing/));
  await first.close();
  assert.deepEqual(readdirSync(folder), [], 'nothing was saved, so nothing stays');
  await (await OutputFiles.open([path], SETTINGS, false)).close();
});

test('a folder, and a path in no folder, are refused before anything is searched', async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'out.npy'));
  await assert.rejects(
    OutputFiles.open([join(folder, 'out.npy')], SETTINGS, false),
    trawlError('OUTPUT_NOT_WRITABLE', /it is a folder/),
  );
  await assert.rejects(
    OutputFiles.open([join(folder, 'a.npy'), join(folder, 'none', 'b.npy')], SETTINGS, false),
    trawlError('OUTPUT_NOT_WRITABLE', /parent folder/),
  );
  assert.equal(existsSync(join(folder, 'a.npy.partial')), false);
});
