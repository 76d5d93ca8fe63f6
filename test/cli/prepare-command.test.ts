import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readAll } from '../corpus/corpus-dir.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { numbered, writeLines } from '../indexer/prepare/documents.ts';
import { endOf, jsonOf, runTrawl, spawnTrawl } from './run-trawl.ts';

const PROGRAM = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));

test('prepare writes a corpus that trawl index reads, and reports its counts', async (t) => {
  const folder = await tempFolder(t);
  const documents = writeLines(folder, 'd.jsonl', [
    { id: 'a', title: 'T', text: numbered(250) },
    { title: 'E', text: '' },
  ]);
  const out = join(folder, 'p.jsonl.zst');
  const summary = jsonOf<Record<string, unknown>>(
    await runTrawl([
      'prepare',
      documents,
      '--out',
      out,
      '--rule',
      'words',
      '--size',
      '90',
      '--overlap',
      '10',
      '--json',
    ]),
  );
  assert.deepEqual(
    [summary['passages'], summary['documents'], summary['emptyDocuments'], summary['rule'], summary['out']],
    [3, 2, 1, 'words', out],
  );
  const index = join(folder, 'index');
  const built = jsonOf<{ rows: number }>(await runTrawl(['index', out, '--out', index, '--json']));
  assert.equal(built.rows, 3);
  const again = await runTrawl(['prepare', documents, '--out', out]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /OUTPUT_EXISTS/);
  const text = await runTrawl(['prepare', documents, '--out', out, '--overwrite', '--no-columns']);
  assert.equal(text.code, 0);
  assert.match(text.stderr, /3 passages from 2 documents/);
  assert.deepEqual(Object.keys((await readAll(out))[0]!.row), ['id', 'title', 'text']);
});

test('prepare without --out, or with options that exclude each other, is a usage error', async (t) => {
  const folder = await tempFolder(t);
  const documents = writeLines(folder, 'd.jsonl', [{ title: 'T', text: 'x' }]);
  for (const args of [
    [],
    ['--out', join(folder, 'p.jsonl'), '--rule', 'dpr', '--size', '5'],
    ['--out', join(folder, 'p.csv')],
    ['--out', join(folder, 'p.jsonl'), '--rule', 'none'],
  ]) {
    const { code, stderr } = await runTrawl(['prepare', documents, ...args]);
    assert.equal(code, 2, stderr);
  }
  assert.deepEqual(readdirSync(folder), ['d.jsonl']);
});

test('a killed prepare leaves only the partial file; one stopped by SIGTERM leaves no file', async (t) => {
  const folder = await tempFolder(t);
  const documents = writeLines(
    folder,
    'd.jsonl',
    Array.from({ length: 10_000 }, (_, i) => ({ id: i, title: `T${i}`, text: numbered(500) })),
  );
  const out = join(folder, 'p.jsonl.gz');
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    rmSync(`${out}.partial`, { force: true });
    const child = spawnTrawl(['prepare', documents, documents, documents, documents, '--out', out]);
    const ended = endOf(child);
    while (!existsSync(`${out}.partial`) && child.exitCode === null) await new Promise((next) => setTimeout(next, 5));
    child.kill(signal);
    const { code } = await ended;
    assert.equal(code, signal === 'SIGTERM' ? 130 : null);
    assert.deepEqual(
      readdirSync(folder).sort(),
      signal === 'SIGTERM' ? ['d.jsonl'] : ['d.jsonl', 'p.jsonl.gz.partial'],
    );
  }
});

test('prepare without space for its output fails with DISK_FULL and leaves no file', async (t) => {
  const folder = await tempFolder(t);
  const documents = writeLines(
    folder,
    'd.jsonl',
    Array.from({ length: 2000 }, (_, i) => ({ title: `T${i}`, text: numbered(500) })),
  );
  const out = join(folder, 'p.jsonl');
  // A limit on the file size acts like a full disk: part of the data is written, then EFBIG. 1 MiB in units of 512 bytes.
  const limited = spawn(
    '/bin/sh',
    [
      '-c',
      'trap "" XFSZ; ulimit -f 2048; exec "$@"',
      'sh',
      process.execPath,
      PROGRAM,
      'prepare',
      documents,
      '--out',
      out,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let stderr = '';
  limited.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
  const [code] = (await once(limited, 'close')) as [number];
  assert.equal(code, 1);
  assert.match(stderr, /no space left.*DISK_FULL/);
  assert.deepEqual(readdirSync(folder), ['d.jsonl']);
});
