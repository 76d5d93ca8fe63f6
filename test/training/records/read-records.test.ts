import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { type DamagedLine, type ReadRecordsOptions, readRecords } from '../../../training/records/read-records.ts';
import type { RecordedQuery } from '../../../training/records/recorded-query.ts';
import { RECORD_HEAD, recordLine } from '../../helpers/record-lines.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { parseRecord } from './parse-record.ts';

async function queriesOf(paths: readonly string[], options: ReadRecordsOptions = {}): Promise<string[]> {
  const found: string[] = [];
  for await (const { query } of readRecords(paths, options)) found.push(query.query);
  return found;
}

function parsed(text: string): RecordedQuery {
  const result = parseRecord(text);
  assert.ok(result.ok, text);
  return result.query;
}

test('rotated files are read before the file, oldest first, compressed or not', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, recordLine('newest'));
  writeFileSync(`${path}.1`, recordLine('third'));
  writeFileSync(`${path}.2.zst`, zstdCompressSync(recordLine('second a') + recordLine('second b')));
  writeFileSync(`${path}.10.gz`, gzipSync(recordLine('oldest')));
  // Neither is a rotated file.
  writeFileSync(`${path}.1.zst.partial`, 'half a file');
  writeFileSync(`${path}.next`, recordLine('no'));
  assert.deepEqual(await queriesOf([path]), ['oldest', 'second a', 'second b', 'third', 'newest']);
  assert.deepEqual(await queriesOf([`${path}.2.zst`]), ['second a', 'second b']);
});

test('a file that is there both plain and compressed is read once', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(`${path}.1`, recordLine('x'));
  writeFileSync(`${path}.1.zst`, zstdCompressSync(recordLine('x')));
  assert.deepEqual(await queriesOf([path]), ['x']);
});

test('a file that several paths lead to is read once', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'record.jsonl');
  writeFileSync(path, recordLine('x'));
  writeFileSync(`${path}.1`, recordLine('y'));
  symlinkSync(path, join(folder, 'link'));
  assert.deepEqual(await queriesOf([`${path}.1`, path, join(folder, 'link')]), ['y', 'x']);
});

test('a rotation while the files are read neither hides nor repeats lines', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(`${path}.1`, recordLine('a'));
  writeFileSync(path, recordLine('b'));
  const found: string[] = [];
  for await (const { query } of readRecords([path])) {
    found.push(query.query);
    if (query.query !== 'a') continue;
    await rename(`${path}.1`, `${path}.2`);
    await rename(path, `${path}.1`);
    writeFileSync(path, recordLine('c'));
  }
  assert.deepEqual(found, ['a', 'b']);
});

test('a line has its place and its text', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, `${recordLine('x')}\n${recordLine('y')}`);
  const found: object[] = [];
  for await (const { file, line: number, text } of readRecords([path])) found.push({ file, number, text });
  assert.deepEqual(found, [
    { file: path, number: 1, text: recordLine('x').trim() },
    { file: path, number: 3, text: recordLine('y').trim() },
  ]);
});

test('a line of version 0.1.0 has only the fields that it had', () => {
  const query = parsed(recordLine('q', { question: 'Q?' }));
  assert.deepEqual(query, {
    ...RECORD_HEAD,
    query: 'q',
    question: 'Q?',
    k: 2,
    rows: [4, 1],
    scores: [0.5, 0.25],
    ids: ['a', '7'],
  });
});

test('a line has trajectory, turn and the other ids of its client', () => {
  const origin = {
    trajectory: 't-1',
    trajectoryFrom: 'guess',
    turn: 2,
    questionId: 'train_7',
    dataset: 'hotpotqa',
    policy: 'run-3',
    step: 120,
    split: 'train',
    tags: { arm: 'b' },
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    cut: 'tail',
  };
  const query = parsed(recordLine('q', { ...origin, aLaterField: 1 })) as unknown as Record<string, unknown>;
  for (const [name, value] of Object.entries(origin)) assert.deepEqual(query[name], value, name);
  assert.ok(!('aLaterField' in query));
});

test('ids are texts: integers keep their digits, and a passage without an id has null', () => {
  const text = recordLine('q').replace('"ids":["a",7]', '"ids":[9007199254740993,null]');
  assert.deepEqual(parsed(text).ids, ['9007199254740993', null]);
});

test('a failed query has its error and no hits', () => {
  const { error, rows, scores, ids } = parsed(
    JSON.stringify({ ...RECORD_HEAD, query: 'q', k: 2, error: 'ENCODING_FAILED' }),
  );
  assert.deepEqual([error, rows, scores, ids], ['ENCODING_FAILED', [], [], []]);
});

test('the unfinished last line of a file is left out and reported as such', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(`${path}.1`, recordLine('a') + recordLine('b').slice(0, 40));
  writeFileSync(path, recordLine('c'));
  assert.deepEqual(await queriesOf([path]), ['a', 'c']);
  const damaged: DamagedLine[] = [];
  await queriesOf([path], { onDamaged: (each) => damaged.push(each) });
  assert.deepEqual(damaged, [{ file: `${path}.1`, line: 2, reason: 'not valid JSON', unfinished: true }]);
});

test('a last line without a line end counts if it is whole', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, recordLine('a') + recordLine('b').trim());
  assert.deepEqual(await queriesOf([path]), ['a', 'b']);
});

test('another damaged line is refused with file and line, or reported and left out', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  for (const [bad, reason] of [
    ['{"query": \n', 'not valid JSON'],
    ['[]\n', 'not a line of --record (not a JSON object)'],
    ['{"id":"1","contents":"a corpus"}\n', 'not a line of --record (no usable field time)'],
    [recordLine('q', { query: 7 }), 'not a line of --record (no usable field query)'],
    [recordLine('q', { turn: -1 }), 'not a line of --record (no usable field turn)'],
    [recordLine('q', { ids: ['a'] }), 'not a line of --record (rows, scores and ids differ in length)'],
    [
      recordLine('q', { rows: undefined, scores: undefined, ids: undefined }),
      'not a line of --record (neither hits nor an error)',
    ],
  ] as const) {
    writeFileSync(path, recordLine('a') + bad + recordLine('c'));
    await assert.rejects(queriesOf([path]), trawlError('CORPUS_BAD_LINE', /record\.jsonl:2: /));
    const damaged: DamagedLine[] = [];
    assert.deepEqual(await queriesOf([path], { onDamaged: (each) => damaged.push(each) }), ['a', 'c']);
    assert.deepEqual(damaged, [{ file: path, line: 2, reason, unfinished: false }]);
  }
});

test('bytes that are not UTF-8 are a damaged line', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, Buffer.concat([Buffer.from([0xff, 0x0a]), Buffer.from(recordLine('b'))]));
  await assert.rejects(queriesOf([path]), trawlError('CORPUS_BAD_LINE', /record\.jsonl:1: not valid UTF-8/));
});

test('truncated or damaged compressed files are refused with file and line', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  const text = Array.from({ length: 20_000 }, (_, i) => recordLine(`query ${i} ${Math.sin(i)}`)).join('');
  for (const packed of [zstdCompressSync(text), gzipSync(text)]) {
    writeFileSync(path, packed.subarray(0, packed.length - 20));
    await assert.rejects(queriesOf([path]), trawlError('CORPUS_BAD_LINE', /record\.jsonl:\d+: the compressed data/));
  }
});

test('a path without a file is refused', async (t) => {
  const folder = await tempFolder(t);
  await assert.rejects(queriesOf([join(folder, 'none.jsonl')]), trawlError('CORPUS_NOT_FOUND', /none\.jsonl/));
  await assert.rejects(queriesOf([join(folder, 'none', 'x.jsonl')]), trawlError('CORPUS_NOT_FOUND'));
  await mkdir(join(folder, 'folder.jsonl'));
  await assert.rejects(queriesOf([join(folder, 'folder.jsonl')]), trawlError('CORPUS_NOT_FOUND', /regular file/));
});

test('an aborted reading ends with CANCELLED', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, recordLine('a'));
  await assert.rejects(queriesOf([path], { signal: AbortSignal.abort() }), trawlError('CANCELLED'));
});

test('no damage of a line makes the reader throw anything but its own errors', () => {
  const whole = recordLine('q', { tags: { a: 'b' }, history: ['x'], indexes: ['i', 'j'] }).trim();
  fc.assert(
    fc.property(fc.nat(whole.length), fc.nat(20), fc.string({ maxLength: 5 }), (at, removed, inserted) => {
      const result = parseRecord(whole.slice(0, at) + inserted + whole.slice(at + removed));
      if (!result.ok) return assert.equal(typeof result.reason, 'string');
      assert.equal(result.query.rows.length, result.query.ids.length);
    }),
  );
  fc.assert(fc.property(fc.json(), (json) => typeof parseRecord(json).ok === 'boolean'));
});

test('a set is read from the file that it names, whatever is around it', async (t) => {
  const folder = await tempFolder(t);
  writeFileSync(join(folder, 'a.jsonl'), recordLine('a'));
  writeFileSync(join(folder, 'a.jsonl.bak'), 'x');
  writeFileSync(join(folder, 'aa.jsonl.1'), recordLine('other'));
  assert.deepEqual(await queriesOf([join(folder, 'a.jsonl')]), ['a']);
});

const COUNTER = `
import { readRecords } from '#root/training/records/read-records.js';
let count = 0;
for await (const { query } of readRecords([process.argv[2]])) count += query.rows.length > 0 ? 1 : 0;
console.log(count);
`;

test('a file that is larger than the memory is read', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'record.jsonl');
  const program = join(folder, 'count.mjs');
  writeFileSync(program, COUNTER.replaceAll('#root/', new URL('../../../', import.meta.url).href));
  // 200 MB as text.
  const lines = recordLine('x'.repeat(2000)).repeat(1000);
  writeFileSync(`${path}.1.zst`, Buffer.concat(Array(90).fill(zstdCompressSync(lines))));
  const { stdout, stderr } = spawnSync(process.execPath, ['--max-old-space-size=40', program, path], {
    encoding: 'utf8',
  });
  assert.equal(stdout.trim(), '90000', stderr);
});

test('the message for a damaged line says how to get the others', async (t) => {
  const path = join(await tempFolder(t), 'record.jsonl');
  writeFileSync(path, `${recordLine('a')}damaged\n${recordLine('b')}`);
  await assert.rejects(
    queriesOf([path]),
    trawlError('CORPUS_BAD_LINE', /record\.jsonl:2: .*trawl records cat FILE --skip-damaged --out NEW/),
  );
});
