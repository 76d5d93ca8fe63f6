import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { RecordFile, type RecordFileOptions } from '../../../src/server/recording/record-file.ts';
import { readRecords } from '../../../training/records/read-records.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

async function rotating(path: string, more: Partial<RecordFileOptions> = {}): Promise<RecordFile> {
  return RecordFile.open({ path, maxFileBytes: 300, keep: 3, compress: true, ...more });
}

async function queriesOf(path: string): Promise<number[]> {
  const found: number[] = [];
  for await (const { query } of readRecords([path])) found.push(Number(query.query));
  return found;
}

test('renamed files are compressed, keep their mode and are read like the others', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const file = await rotating(path);
  for (let i = 0; i < 6; i++) {
    await file.append(recordLine(String(i)));
    await file.compressed();
  }
  await file.close();
  assert.deepEqual(readdirSync(join(path, '..')).sort(), [
    'record.jsonl',
    'record.jsonl.1.zst',
    'record.jsonl.2.zst',
    'record.jsonl.3.zst',
  ]);
  assert.equal(zstdDecompressSync(readFileSync(`${path}.1.zst`)).toString(), recordLine('4'));
  assert.equal(statSync(`${path}.1.zst`).mode & 0o777, 0o600);
  assert.deepEqual(await queriesOf(path), [2, 3, 4, 5]);
});

test('a plain file of an earlier run is compressed after the next rotation, and one in both forms counts once', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, recordLine('4'));
  writeFileSync(`${path}.1`, recordLine('3'));
  writeFileSync(`${path}.1.zst`, zstdCompressSync(recordLine('3')));
  writeFileSync(`${path}.1.zst.partial`, 'x');
  writeFileSync(`${path}.2`, recordLine('2'));
  writeFileSync(`${path}.3.zst`, zstdCompressSync(recordLine('1')));
  assert.deepEqual(await queriesOf(path), [1, 2, 3, 4]);
  const file = await rotating(path);
  await file.append(recordLine('5'));
  await file.compressed();
  await file.close();
  assert.deepEqual(await queriesOf(path), [2, 3, 4, 5]);
  assert.deepEqual(
    [1, 2, 3].map((age) => [existsSync(`${path}.${age}`), existsSync(`${path}.${age}.zst`)]),
    Array(3).fill([false, true]),
  );
});

test('files that are kept plain and compressed ones are renamed together', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  for (const [i, compress] of [true, false, true, false].entries()) {
    const file = await rotating(path, { compress, keep: 9 });
    for (let j = 0; j < 2; j++) await file.append(recordLine(String(2 * i + j)));
    await file.compressed();
    await file.close();
  }
  assert.deepEqual(await queriesOf(path), [0, 1, 2, 3, 4, 5, 6, 7]);
});

test('a file that cannot be compressed stays plain, is reported, and is compressed later', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const failures: unknown[] = [];
  const file = await rotating(path, {
    onCompressionFailure: (error) => failures.push((error as { code: string }).code),
  });
  mkdirSync(`${path}.1.zst.partial`);
  for (let i = 0; i < 2; i++) await file.append(recordLine(String(i)));
  await file.compressed();
  assert.deepEqual([failures.length, existsSync(`${path}.1`), existsSync(`${path}.1.zst`)], [1, true, false]);
  rmdirSync(`${path}.1.zst.partial`);
  await file.append(recordLine('2'));
  await file.compressed();
  await file.close();
  assert.deepEqual([existsSync(`${path}.1.zst`), existsSync(`${path}.2.zst`)], [true, true]);
  assert.deepEqual(await queriesOf(path), [0, 1, 2]);
});

test('a compressed file beside the file itself that is none of its renamed ones stays', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(`${path}.zst`, 'of the user');
  const file = await rotating(path);
  for (let i = 0; i < 5; i++) await file.append(recordLine(String(i)));
  await file.compressed();
  await file.close();
  assert.equal(readFileSync(`${path}.zst`, 'utf8'), 'of the user');
});

test('a line that a killed server left unfinished is cut off and counted, and readers read the file', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const long = recordLine('7'.repeat(200_000));
  for (const half of [long.slice(0, 1), long.slice(0, 20), long.slice(0, -2)]) {
    writeFileSync(path, recordLine('0') + half);
    let noted = 0;
    const file = await rotating(path, { maxFileBytes: 1e9, onLineCut: () => void noted++ });
    assert.deepEqual([readFileSync(path, 'utf8'), file.linesCut, noted], [recordLine('0'), 1, 1]);
    await file.append(recordLine('1'));
    await file.close();
    assert.deepEqual([await queriesOf(path), file.linesCut], [[0, 1], 1]);
  }
  writeFileSync(path, recordLine('7').slice(0, 20));
  await (await rotating(path)).close();
  assert.equal(readFileSync(path, 'utf8'), '');
});

test('a whole record without its line end, and the last line of another program, are kept', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  for (const last of [recordLine('7').trim(), 'a note', '{"other": 1']) {
    writeFileSync(path, recordLine('0') + last);
    const file = await rotating(path, { maxFileBytes: 1e9 });
    await file.append(recordLine('1'));
    await file.close();
    assert.deepEqual([readFileSync(path, 'utf8'), file.linesCut], [`${recordLine('0')}${last}\n${recordLine('1')}`, 0]);
  }
});

test('if an unfinished line cannot be cut off the file opens, and the first lines try again', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, recordLine('0') + recordLine('7').slice(0, 20));
  const handle = await open(path);
  const truncate = t.mock.method(Object.getPrototypeOf(handle) as FileHandle, 'truncate', () =>
    Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' })),
  );
  await handle.close();
  const file = await rotating(path, { maxFileBytes: 1e9 });
  await assert.rejects(file.append(recordLine('1')), { code: 'ENOSPC' });
  truncate.mock.restore();
  await file.append(recordLine('2'));
  await file.close();
  assert.deepEqual([await queriesOf(path), file.linesCut], [[0, 2], 1]);
});

test('while a file cannot be renamed the open one grows by a further size, and no kept file is lost', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  let failures = 0;
  const file = await rotating(path, {
    // Two lines.
    maxFileBytes: 370,
    keep: 4,
    compress: false,
    onRotationFailure: () => void failures++,
  });
  const append = async (from: number, to: number): Promise<void> => {
    for (let i = from; i <= to; i++) await file.append(recordLine(String(i)));
  };
  await append(0, 9);
  // The compressed form of a file that is there plain is removed first, which a folder is not.
  mkdirSync(`${path}.1.zst`);
  await append(10, 10);
  assert.equal(failures, 1);
  await append(11, 13);
  assert.equal(failures, 2);
  rmdirSync(`${path}.1.zst`);
  await append(14, 14);
  await file.close();
  assert.equal(failures, 2);
  assert.deepEqual(await queriesOf(path), [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  assert.equal(readFileSync(path, 'utf8'), recordLine('14'));
});

test('if no new file can be made, as on a disk without free inodes, the open one takes the lines', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const failures: unknown[] = [];
  // One line.
  const options = { compress: false, onRotationFailure: (error: unknown) => failures.push(error) };
  const file = await rotating(path, options);
  mkdirSync(`${path}.next`);
  for (let i = 0; i < 3; i++) await file.append(recordLine(String(i)));
  assert.deepEqual(await queriesOf(path), [0, 1, 2]);
  assert.ok(failures.length > 0);
  assert.deepEqual(readdirSync(join(path, '..')).sort(), ['record.jsonl', 'record.jsonl.next']);
  rmdirSync(`${path}.next`);
  for (let i = 3; i < 6; i++) await file.append(recordLine(String(i)));
  await file.close();
  assert.deepEqual(await queriesOf(path), [0, 1, 2, 3, 4, 5]);
  assert.ok(existsSync(`${path}.1`));
});

const WRITER = `
import { RecordFile } from '#root/src/server/recording/record-file.js';
const [path, first] = process.argv.slice(2);
const head = { time: '2026-11-23T01:02:03.456Z', place: 0, k: 0, rows: [], scores: [], ids: [], text: 'x'.repeat(2000) };
const file = await RecordFile.open({ path, maxFileBytes: 20000, keep: 1000, compress: true });
for (let i = Number(first); ; i++) {
  await file.append(JSON.stringify({ ...head, query: String(i) }) + '\\n');
  process.stdout.write(i + '\\n');
}
`;

test('a kill at any moment of rotation and compression loses no line that was written, and doubles none', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'record.jsonl');
  const program = join(folder, 'writer.mjs');
  writeFileSync(program, WRITER.replaceAll('#root/', new URL('../../../', import.meta.url).href));
  let next = 0;
  for (let run = 0; run < 8; run++) {
    const child = spawn(process.execPath, [program, path, String(next)], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    await once(child.stdout, 'data');
    await sleep(20 + 37 * run);
    // On a slow machine the other runs may all end before the first file is compressed.
    const compressed = (): boolean => readdirSync(folder).some((name) => name.endsWith('.zst'));
    while (run === 7 && child.exitCode === null && !compressed()) await sleep(20);
    child.kill('SIGKILL');
    await once(child, 'close');
    const reported = output.split('\n').slice(0, -1).map(Number);
    const found: number[] = [];
    const unfinished: boolean[] = [];
    for await (const { query } of readRecords([path], { onDamaged: (line) => unfinished.push(line.unfinished) })) {
      found.push(Number(query.query));
    }
    assert.deepEqual(
      found,
      Array.from({ length: found.length }, (_, i) => i),
      'every line once, in order',
    );
    assert.ok(found.length > reported.at(-1)!, 'every line that was reported as written is there');
    next = found.length;
  }
  assert.ok(readdirSync(folder).some((name) => name.endsWith('.zst')));
});

test('closing does not wait for the compression, which leaves its file plain', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const file = await rotating(path);
  for (let i = 0; i < 2; i++) await file.append(recordLine(String(i)));
  await file.close();
  assert.deepEqual(await queriesOf(path), [0, 1]);
  assert.deepEqual(
    readdirSync(join(path, '..')).filter((name) => name.endsWith('.partial')),
    [],
  );
});
