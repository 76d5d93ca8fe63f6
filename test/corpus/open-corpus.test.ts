import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import fc from 'fast-check';

import { CORPUS_FORMATS, FILE_FORMATS } from '../../corpus/corpus-formats.ts';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { readQuestions } from '../../evaluation/read-questions.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { runs } from '../helpers/runs.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { eventually } from '../server/build.ts';
import { corpusDir, failsWith, readAll } from './corpus-dir.ts';

const row = (text: string): string => `${JSON.stringify({ text })}\n`;

async function texts(...args: Parameters<typeof readAll>): Promise<unknown[]> {
  return (await readAll(...args)).map((passage) => passage.row.text ?? passage.row.contents);
}

test('the README of the corpus folder lists the formats', () => {
  const rows = FILE_FORMATS.map(({ name, format, compression, extensions }) => {
    const content = compression === 'none' ? format.content : `the same, ${compression}`;
    return `| ${extensions.map((extension) => `\`${extension}\``).join(', ')} | \`${name}\` | ${content} |`;
  });
  const readme = readFileSync(join(packageRoot, 'corpus', 'README.md'), 'utf8');
  assert.ok(
    readme.includes(`| Name ends in | \`--format\` | Content |\n| --- | --- | --- |\n${rows.join('\n')}\n\n`),
    rows.join('\n'),
  );
});

test('paths are read in the order given', async (t) => {
  const dir = corpusDir(t);
  const [a, b] = [dir.write('a.jsonl', row('a')), dir.write('b.jsonl', row('b'))];
  assert.deepEqual(await texts([b, a, b]), ['b', 'a', 'b']);
});

test('a directory is read in the byte order of relative paths, known extensions only, without hidden names', async (t) => {
  const dir = corpusDir(t);
  for (const name of [
    'b.jsonl',
    'a/z.jsonl',
    'a-1.ndjson',
    'B.JSONL',
    'é.jsonl',
    '10.jsonl',
    '9.jsonl',
    '.hidden.jsonl',
    '.git/x.jsonl',
  ]) {
    dir.write(name, row(name));
  }
  dir.write('c.jsonl.gz', gzipSync(row('c.jsonl.gz')));
  dir.write('d.tsv', '1\td.tsv\n');
  dir.write('README.md', 'not a corpus');
  dir.write('e.json', '[]');
  assert.deepEqual(await texts(dir.path), [
    '10.jsonl',
    '9.jsonl',
    'B.JSONL',
    'a-1.ndjson',
    'a/z.jsonl',
    'b.jsonl',
    'c.jsonl.gz',
    'd.tsv',
    'é.jsonl',
  ]);
});

test('symbolic links are followed, and a cycle of links ends', async (t) => {
  const dir = corpusDir(t);
  const blob = dir.write('.blobs/0a1b', row('blob'));
  dir.write('real/x.jsonl', row('x'));
  symlinkSync(blob, join(dir.path, 'a.jsonl'));
  symlinkSync(join(dir.path, 'real'), join(dir.path, 'linked'));
  symlinkSync(dir.path, join(dir.path, 'real', 'circle'));
  assert.deepEqual(await texts(dir.path), ['blob', 'x', 'x']);
  symlinkSync(join(dir.path, 'gone'), join(dir.path, 'broken.jsonl'));
  assert.throws(() => openCorpus([dir.path]), failsWith('CORPUS_NOT_FOUND', 'broken.jsonl'));
});

test('wrong paths are reported before anything is read', (t) => {
  const dir = corpusDir(t);
  const good = dir.write('a.jsonl', row('a'));
  mkdirSync(join(dir.path, 'empty'));
  assert.throws(() => openCorpus([good, join(dir.path, 'gone.jsonl')]), failsWith('CORPUS_NOT_FOUND', 'gone.jsonl'));
  assert.throws(() => openCorpus([join(good, 'x.jsonl')]), failsWith('CORPUS_NOT_FOUND', 'x.jsonl'));
  assert.throws(() => openCorpus([join(dir.path, 'empty')]), failsWith('CORPUS_EMPTY', 'empty', '.jsonl'));
  assert.throws(() => openCorpus([]), failsWith('USAGE'));
  assert.throws(() => openCorpus(['a\0b.jsonl']), TrawlError);
});

test('an unknown extension is refused with the known ones, unless the format is given', async (t) => {
  const dir = corpusDir(t);
  for (const [name, conversion] of [
    ['corpus.json', "jq -c '.[]' "],
    ['corpus.csv', 'csv.DictReader'],
    ['corpus', 'convert it, such as to JSONL'],
    ['corpus.gz', 'convert it, such as to JSONL'],
    ['corpus.jsonl.xz', 'xz -dk '],
  ] as const) {
    const file = dir.write(name, row('a'));
    assert.throws(
      () => openCorpus([file]),
      failsWith('CORPUS_FORMAT_UNKNOWN', file, '.jsonl.gz', '--format', 'parquet', conversion),
    );
    assert.deepEqual(await texts(file, { format: 'jsonl' }), ['a']);
  }
  assert.throws(
    () => openCorpus([dir.write('corpus.txt', '%PDF-1.7')]),
    failsWith('CORPUS_FORMAT_UNKNOWN', 'is a PDF'),
  );
});

test('a file that is not text is recognised by its first bytes, also in a compressed one', async (t) => {
  const dir = corpusDir(t);
  const zeros = '\0'.repeat(60);
  for (const [begin, what] of [
    ['version https://git-lfs.github.com/spec/v1\noid', 'a pointer of Git LFS.*git lfs pull'],
    ['<!DOCTYPE html><html>', 'an HTML page'],
    ['\x93NUMPY\x01\0', 'a \\.npy array'],
    ['PAR1\x15\x04', 'a Parquet file.*\\.parquet'],
    [`PK\x03\x04${zeros.slice(0, 26)}arr_0.npy`, 'an \\.npz archive'],
    [`PK\x03\x04${zeros.slice(0, 26)}archive/data.pkl`, 'torch\\.save'],
    [`PK\x03\x04${zeros.slice(0, 26)}[Content_Types].xml`, 'an office program.*Export'],
    [`PK\x03\x04${zeros}`, 'a zip archive.*Unpack'],
    ['IxFI\0\x03\0\0', 'a FAISS index.*trawl import'],
    ['GGUF\x03\0\0\0', 'a GGUF model'],
    ['\x80\x04\x95', 'a pickle of Python'],
    ['SQLite format 3\0', 'an SQLite database'],
    ['BZh91AY&SY', 'compressed with bzip2'],
    ['\xfd7zXZ\0', 'compressed with xz'],
    ['\x40\0\0\0\0\0\0\0{"a"', 'a safetensors file'],
    ['\xff\xff\xff\xff\x10\x01\0\0', 'an Arrow stream.*to_parquet'],
    ['%PDF-1.7', 'a PDF document'],
  ] as const) {
    const bytes = Buffer.from(begin, 'latin1');
    const refusal = trawlError('CORPUS_FORMAT_UNKNOWN', new RegExp(`is .*${what}`));
    await assert.rejects(texts(dir.write('corpus.jsonl', bytes)), refusal, what);
    await assert.rejects(texts(dir.write('corpus.tsv.gz', gzipSync(bytes))), refusal, what);
    await assert.rejects(readQuestions(dir.write('questions', bytes)), refusal, what);
  }
  for (const text of ['PAR1 is a word', 'GGUF is one', 'IBM1 is', 'PK and', 'I saw', 'BZh9 no', 'version https']) {
    const words = dir.write('words.tsv', `${text} 1\tx\ty\n`);
    assert.equal((await readAll(words, { tsvLayout: 'id,text,title' })).length, 1, text);
  }
});

test('option values that do not exist are refused', () => {
  assert.throws(() => openCorpus(['x'], { format: 'csv' as 'tsv' }), failsWith('USAGE', '"csv"', 'jsonl.gz'));
  assert.throws(() => openCorpus(['x'], { tsvLayout: 'x' }), failsWith('USAGE', 'r1-searcher or the names'));
  assert.throws(() => openCorpus(['x'], { tsvIdType: 'int' as 'integer' }), failsWith('USAGE', 'integer'));
  assert.throws(() => openCorpus(['x'], { maxLineBytes: 0 }), failsWith('USAGE', 'maxLineBytes'));
});

test('a file without read permission, or one that was deleted, is CORPUS_NOT_FOUND', async (t) => {
  const file = corpusDir(t).write('a.jsonl', row('a'));
  if (process.getuid?.() === 0) t.diagnostic('permissions are not tested: root may read anything');
  else {
    chmodSync(file, 0);
    await assert.rejects(readAll(file), failsWith('CORPUS_NOT_FOUND', 'permission denied'));
  }
  const dir = corpusDir(t);
  const corpus = openCorpus([dir.write('b.jsonl', row('b'))]);
  const { rmSync } = await import('node:fs');
  rmSync(corpus.files[0]!.path);
  await assert.rejects(
    async () => {
      for await (const _ of corpus);
    },
    failsWith('CORPUS_NOT_FOUND', 'no such file'),
  );
});

test('bytes are counted per file and in total, with a checksum per file', async (t) => {
  const dir = corpusDir(t);
  const contents = [Buffer.from(row('a') + row('b')), gzipSync(`${row('c')}oops\n`)];
  const paths = [dir.write('a.jsonl', contents[0]!), dir.write('b.jsonl.gz', contents[1]!)];
  const corpus = openCorpus(paths, { skipBadLines: true });
  assert.equal(corpus.report.files[0]?.sha256, null);
  assert.equal(corpus.report.sizeBytes, contents[0]!.length + contents[1]!.length);
  for (let pass = 0; pass < 2; pass += 1) {
    let early: typeof corpus.report | undefined;
    for await (const _ of corpus) early ??= corpus.report;
    assert.equal(early?.files[0]?.sha256, null, 'a report does not change later');
    const { files, readBytes, sizeBytes } = corpus.report;
    assert.deepEqual(
      files.map((file) => [file.readBytes, file.sha256]),
      contents.map((bytes) => [bytes.length, createHash('sha256').update(bytes).digest('hex')]),
    );
    assert.equal(readBytes, sizeBytes);
  }
});

test('checksums can be switched off', async (t) => {
  const corpus = openCorpus([corpusDir(t).write('a.jsonl', row('a'))], { checksums: false });
  for await (const _ of corpus);
  assert.equal(corpus.report.files[0]?.sha256, null);
});

test('an empty file has no passages and is no error', async (t) => {
  assert.deepEqual(await texts(corpusDir(t).write('a.jsonl', '')), []);
  assert.deepEqual(await texts(corpusDir(t).write('a.tsv', '\ufeff')), []);
});

test('leaving the loop closes the file', { skip: process.platform !== 'linux' && 'needs /proc/self/fd' }, async (t) => {
  const dir = corpusDir(t);
  const content = row('a').repeat(200_000);
  const paths = [dir.write('a.jsonl', content), dir.write('b.jsonl.gz', gzipSync(content))];
  const open = (): number => readdirSync('/proc/self/fd').length;
  const before = open();
  for (let i = 0; i < 20; i += 1) {
    for await (const _ of openCorpus([paths[i % 2]!])) break;
  }
  await eventually(() => open() <= before + 1);
});

test('an aborted signal stops the reading with CANCELLED', async (t) => {
  const file = corpusDir(t).write('a.jsonl', row('a').repeat(100_000));
  const controller = new AbortController();
  let count = 0;
  await assert.rejects(async () => {
    for await (const _ of openCorpus([file], { signal: controller.signal })) {
      count += 1;
      controller.abort();
    }
  }, failsWith('CANCELLED'));
  assert.ok(count < 100_000);
});

test('a slow consumer does not make the reader run ahead', async (t) => {
  const corpus = openCorpus([corpusDir(t).write('a.jsonl', row('x'.repeat(1000)).repeat(20_000))]);
  for await (const _ of corpus) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    break;
  }
  assert.ok(corpus.report.readBytes < 2_000_000, `${corpus.report.readBytes} bytes read for one passage`);
});

test('random bytes give passages or a TrawlError in every format', async (t) => {
  const dir = corpusDir(t);
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc
      .array(
        fc.constantFrom(
          '{"id":',
          '1',
          '"text"',
          ':',
          '"',
          '}',
          '\n',
          '\r',
          '\t',
          'id',
          'é',
          '\ufeff',
          '\0',
          ',',
          'PAR1',
        ),
      )
      .map((parts) => new TextEncoder().encode(parts.join(''))),
  );
  await fc.assert(
    fc.asyncProperty(bytes, fc.constantFrom(...CORPUS_FORMATS), fc.boolean(), async (content, format, skipBadLines) => {
      const packed = format.endsWith('.gz') && content.length % 2 === 0 ? gzipSync(content) : content;
      const file = dir.write('fuzz', packed);
      try {
        for (const { document } of await readAll(file, { format, skipBadLines })) {
          assert.ok(!/[\r\n]/.test(document));
          JSON.parse(document);
        }
      } catch (error) {
        assert.ok(error instanceof TrawlError && error.code !== 'INTERNAL', String(error));
      }
    }),
    { numRuns: runs(120, 500) },
  );
});
