import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { scanCorpus } from '../../corpus/scan-corpus.ts';
import { DamagedDataError } from '../../src/base/files/compression.ts';
import { onlyMember } from '../../src/base/files/only-member.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { corpusDir, failsWith, readAll } from './corpus-dir.ts';

/** The name of the file in the published wiki-18.jsonl.gz. */
const NAME = 'data00/jiajie_jin/flashrag_indexes/wiki_dpr_100w/wiki_dump.jsonl';
const LINES = Array.from({ length: 3000 }, (_, i) => `{"id":"${i}","contents":"\\"T${i}\\"\\ntext ${i}"}`);
const TEXT = Buffer.from(LINES.map((line) => `${line}\n`).join(''));
const END = Buffer.alloc(1024);

/** A member as GNU tar writes it. GNU tar writes sizes from 8 GiB in base 256. */
function member(content: Buffer, { name = NAME, type = '0', base256 = false } = {}): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0, 100, 'utf8');
  header.write(`0000644\0${'0001750\0'.repeat(2)}`, 100, 'latin1');
  if (base256) {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(content.length), 128);
  } else header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
  header.write('14564100000\0', 136, 'latin1');
  header.write(`        ${type}`, 148, 'latin1');
  header.write('ustar  \0', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

async function textOf(bytes: Buffer, cuts: readonly number[] = []): Promise<Buffer> {
  const source = (async function* () {
    let from = 0;
    for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
      if (cut > from) yield bytes.subarray(from, cut);
      from = Math.max(from, cut);
    }
  })();
  const chunks: Buffer[] = [];
  for await (const chunk of onlyMember(source)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('a gzipped tar archive of one file, such as the published wiki-18.jsonl.gz, is read like the file, and so is the gunzipped archive', async (t) => {
  const archive = Buffer.concat([member(TEXT, { base256: true }), END, Buffer.alloc(8192)]);
  const dir = corpusDir(t);
  const packed = gzipSync(archive);
  for (const [name, bytes] of [
    ['wiki-18.jsonl.gz', packed],
    ['wiki-18.jsonl', archive],
  ] as const) {
    const path = dir.write(name, bytes);
    const corpus = openCorpus([path]);
    const documents: string[] = [];
    for await (const { document } of corpus) documents.push(document);
    assert.deepEqual(documents, LINES, name);
    assert.equal(corpus.report.readBytes, bytes.length, 'the checksum is that of the whole file');
    const scan = await scanCorpus(corpus.files);
    assert.equal(scan.positions, LINES.length);
    assert.equal(scan.files[0]!.sha256, corpus.report.files[0]!.sha256);
  }
});

test('a part of an archive is read from the start, since line offsets are those of its file', async (t) => {
  const lines = Array.from({ length: 140_000 }, (_, i) => `{"id":${i},"text":"t"}`);
  const dir = corpusDir(t);
  const path = dir.write('c.jsonl', Buffer.concat([member(Buffer.from(lines.join('\n'))), END]));
  const { files } = openCorpus([path]);
  const scan = await scanCorpus(files);
  assert.equal(scan.positions, 140_000);
  const ids: unknown[] = [];
  for await (const { id } of openCorpus([path], { part: { scan, first: 139_998, end: 140_000 } })) ids.push(id);
  assert.deepEqual(ids, [139_998, 139_999]);
});

test('archives that tar writes in each of its formats are read', async (t) => {
  const folder = await tempFolder(t);
  // Too long for a plain header: every format stores it in its own way.
  const name = `${'long-'.repeat(30)}name.jsonl`;
  writeFileSync(join(folder, name), TEXT);
  for (const format of ['ustar', 'gnu', 'posix']) {
    const out = join(folder, `${format}.tar`);
    const given = format === 'ustar' ? ['--transform', 's/.*/c.jsonl/', name] : [name];
    const made = spawnSync('tar', [`--format=${format}`, '-cf', out, ...given], { cwd: folder, encoding: 'utf8' });
    if (made.error !== undefined || /unrecognized option/.test(made.stderr)) {
      t.skip(`GNU tar is not installed: ${made.error?.message ?? made.stderr}`);
      return;
    }
    assert.equal(made.status, 0, made.stderr);
    assert.ok((await textOf(readFileSync(out))).equals(TEXT), format);
  }
});

test('folders, links and global headers are skipped, and a pax header sets the size of the file', async () => {
  const size = `${TEXT.length}`;
  const record = `${` size=${size}\n`.length + 2} size=${size}\n`;
  const wrong = member(TEXT);
  wrong.write('00000000000\0', 124, 'latin1');
  const sum = wrong.subarray(0, 512).reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  wrong.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  const archive = Buffer.concat([
    member(Buffer.from('19 comment=whatever\n'), { name: 'g', type: 'g' }),
    member(Buffer.alloc(0), { name: 'data00/', type: '5' }),
    member(Buffer.from(record), { name: 'x', type: 'x' }),
    wrong,
    member(Buffer.alloc(0), { name: 'link', type: '2' }),
    END,
  ]);
  assert.ok((await textOf(archive)).equals(TEXT));
});

test('reading an archive does not depend on the chunks', async () => {
  const archive = Buffer.concat([member(TEXT), END]);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 40 }), async (cuts) =>
      assert.ok((await textOf(archive, cuts)).equals(TEXT)),
    ),
    { numRuns: 60 },
  );
});

test('data that is no archive passes through unchanged, even a single byte or none', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), fc.array(fc.nat(), { maxLength: 9 }), async (bytes, cuts) => {
      assert.ok((await textOf(Buffer.from(bytes), cuts)).equals(Buffer.from(bytes)));
    }),
    { numRuns: 100 },
  );
  const like = Buffer.from(`${'x'.repeat(257)}ustar${'y'.repeat(400)}`);
  assert.ok((await textOf(like)).equals(like), 'the magic without the checksum is text');
});

test('an archive that ends within its file or a header is truncated', async () => {
  const archive = Buffer.concat([member(TEXT), member(Buffer.alloc(0), { type: '5' }), END]);
  const file = 512 + TEXT.length;
  for (const length of [513, 1000, file - 1, file, member(TEXT).length + 100]) {
    await assert.rejects(textOf(archive.subarray(0, length)), (error: unknown) => {
      assert.ok(error instanceof DamagedDataError, `${length}: ${error}`);
      return /truncated/.test(error.message);
    });
  }
  assert.ok((await textOf(archive.subarray(0, member(TEXT).length))).equals(TEXT), 'the end blocks may be missing');
});

test('damaged headers, invalid sizes and archives of no or several files are errors with the file name', async (t) => {
  const dir = corpusDir(t);
  const damaged = Buffer.concat([member(TEXT), member(Buffer.alloc(0), { type: '5' }), END]);
  damaged[member(TEXT).length + 3]! ^= 1;
  const huge = member(Buffer.alloc(0), { name: 'x', type: 'x', base256: true });
  huge.writeBigUInt64BE(2n ** 40n, 128);
  const negative = member(TEXT, { base256: true });
  negative[124] = 0xff;
  for (const header of [huge, negative]) {
    const sum = header.subarray(0, 512).reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  }
  for (const [name, bytes, message] of [
    ['two.jsonl', Buffer.concat([member(TEXT), member(TEXT), END]), /several files; unpack it/],
    ['none.jsonl', Buffer.concat([member(Buffer.alloc(0), { type: '5' }), END]), /an empty tar archive/],
    ['damaged.jsonl', damaged, /header of the tar archive is damaged/],
    ['huge.jsonl', Buffer.concat([huge, END]), /has 1099511627776 bytes/],
    ['negative.jsonl', Buffer.concat([negative, END]), /has an invalid size/],
    ['sparse.jsonl', Buffer.concat([member(TEXT, { type: 'S' }), END]), /sparse/],
  ] as const) {
    const expected = failsWith('CORPUS_BAD_LINE', new RegExp(`${name}:\\d+: .*${message.source}`));
    await assert.rejects(readAll(dir.write(name, bytes)), expected);
  }
});
