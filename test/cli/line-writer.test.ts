import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LineWriter } from '../../cli/line-writer.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { startSoakServer } from '../soak/soak-server.ts';
import { fileFolder, postJson, sampleIndex } from './run-trawl.ts';

const FULL = '/dev/full';
const withoutFull = existsSync(FULL) ? false : `there is no ${FULL}`;

test('lines arrive whole and in order, those left at the end by flush', async (t) => {
  const path = join(await tempFolder(t), 'log');
  const fd = openSync(path, 'w');
  const writer = new LineWriter(fd);
  const lines = Array.from({ length: 5_000 }, (_, i) => `line ${i}\n`);
  for (const line of lines.slice(0, 4_000)) writer.write(line);
  await sleep(50);
  for (const line of lines.slice(4_000)) writer.write(line);
  await sleep(50);
  writer.flush();
  assert.equal(await readFile(path, 'utf8'), lines.join(''));
  closeSync(fd);
});

test('what waits for a writing is bounded, and later lines are written', async (t) => {
  const path = join(await tempFolder(t), 'log');
  const fd = openSync(path, 'w');
  const writer = new LineWriter(fd);
  const line = `${'x'.repeat(1_023)}\n`;
  // Without a turn of the event loop nothing is written in between.
  for (let i = 0; i < 20_000; i++) writer.write(line);
  writer.flush();
  await sleep(50);
  const { length } = await readFile(path);
  assert.equal(writer.dropped, 20_000 - length / 1_024);
  assert.ok(length <= 4 * 1024 * 1024 + 1_024, `${length} bytes`);
  writer.write('last\n');
  await sleep(50);
  assert.match(await readFile(path, 'utf8'), /last\n$/);
  closeSync(fd);
});

test('a log that cannot be written holds up neither answers nor the end', { skip: withoutFull }, async () => {
  const fd = openSync(FULL, 'w');
  const writer = new LineWriter(fd);
  writer.write('lost\n');
  await sleep(20);
  writer.write('lost too\n');
  writer.flush();
  const server = await startSoakServer(await sampleIndex(await fileFolder()), { log: fd });
  closeSync(fd);
  for (let i = 0; i < 3; i++) assert.equal((await postJson(server.url, { queries: ['x'], topk: 1 })).status, 200);
  assert.equal(await server.stop(), 0);
});
