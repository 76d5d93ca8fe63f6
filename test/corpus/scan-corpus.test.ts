import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteFile } from 'hyparquet-writer';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { type CorpusPart, openCorpus } from '../../corpus/open-corpus.ts';
import type { Passage } from '../../corpus/passage.ts';
import { LINES_PER_OFFSET, scanCorpus } from '../../corpus/scan-corpus.ts';
import { runs } from '../helpers/runs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

async function readAll(paths: readonly string[], part?: CorpusPart): Promise<string[]> {
  const found: string[] = [];
  const skipped: string[] = [];
  const options = { skipBadLines: true, onSkipped: (file: number, line: number) => skipped.push(`${file}:${line}`) };
  const opened = openCorpus(paths, { ...options, part });
  for await (const { fileIndex, location, document } of opened as AsyncIterable<Passage>) {
    found.push(`${fileIndex}:${location.line} ${document}`);
  }
  return [...found, ...skipped].sort();
}

test('a scan has the checksums and sizes of the files', async (t) => {
  const path = join(await tempFolder(t), 'a.jsonl.gz');
  writeFileSync(path, gzipSync('{"text":"a"}\n{"text":"b"}'));
  const { files, positions } = await scanCorpus(listCorpusFiles([path]));
  assert.equal(files[0]!.sha256, createHash('sha256').update(readFileSync(path)).digest('hex'));
  assert.deepEqual([positions, files[0]!.positions, files[0]!.sizeBytes], [2, 2, readFileSync(path).length]);
});

test('the parts of a corpus add up to the whole, in every format, wherever it is split', async (t) => {
  const folder = await tempFolder(t);
  const json = fc.constantFrom(
    '{"id":1,"text":"a"}',
    '',
    '  ',
    'broken',
    '{"text":"é\u2028x"}',
    '{"contents":"long long long"}',
  );
  const tsv = fc.constantFrom('1\tcontents', '', '2\t"quoted"', 'no tab');
  const lines = fc.array(json, { maxLength: 30 });
  const corpora = fc.record({
    plain: lines,
    packed: lines,
    table: fc.array(tsv, { maxLength: 20 }),
    newline: fc.constantFrom('\n', '\r\n', '\r'),
    end: fc.constantFrom('', '\n'),
    parts: fc.integer({ min: 1, max: 6 }),
  });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(corpora, async ({ plain, packed, table, newline, end, parts }) => {
      const paths = ['a.jsonl', 'b.jsonl.gz', 'c.tsv', 'd.parquet'].map((name) => join(folder, `${run}-${name}`));
      run++;
      writeFileSync(paths[0]!, plain.join('\n') + end);
      writeFileSync(paths[1]!, gzipSync(packed.join('\n') + end));
      writeFileSync(paths[2]!, `${['0\tthe first', ...table].join(newline)}${end}`);
      const ids = Array.from({ length: 7 }, (_, i) => `p${i}`);
      parquetWriteFile({
        filename: paths[3]!,
        columnData: [
          { name: 'id', data: ids, type: 'STRING' },
          { name: 'text', data: ids, type: 'STRING' },
        ],
        rowGroupSize: 3,
      });
      const whole = await readAll(paths);
      const scan = await scanCorpus(listCorpusFiles(paths));
      const { positions } = scan;
      const cut: string[] = [];
      for (let i = 0; i < parts; i++) {
        const [first, last] = [Math.floor((positions * i) / parts), Math.floor((positions * (i + 1)) / parts)];
        cut.push(...(await readAll(paths, { scan, first, end: last })));
      }
      assert.deepEqual(cut.sort(), whole);
    }),
    { numRuns: runs(8, 30) },
  );
});

test('reading a part of a plain file starts near the part', async (t) => {
  const path = join(await tempFolder(t), 'a.jsonl');
  const count = 2 * LINES_PER_OFFSET + 100;
  writeFileSync(path, Array.from({ length: count }, (_, i) => `{"text":"${i}"}\n`).join(''));
  const scan = await scanCorpus(listCorpusFiles([path]));
  assert.equal(scan.positions, count);
  const corpus = openCorpus([path], { checksums: true, part: { scan, first: count - 30, end: count - 10 } });
  const found: number[] = [];
  for await (const { row, location } of corpus) {
    assert.equal(location.line, Number(row['text']) + 1);
    found.push(location.line);
  }
  assert.deepEqual([found[0], found.length, found.at(-1)], [count - 29, 20, count - 10]);
  assert.equal(corpus.report.files[0]!.sha256, null, 'a part has no checksum');
  assert.ok(corpus.report.readBytes < 300_000, `${corpus.report.readBytes} bytes were read`);
});

test('the scan finds a truncated gzip file, and names file and line', async (t) => {
  const path = join(await tempFolder(t), 'a.jsonl.gz');
  const packed = gzipSync('{"text":"some words"}\n'.repeat(50_000));
  writeFileSync(path, packed.subarray(0, packed.length - 20));
  await assert.rejects(
    scanCorpus(listCorpusFiles([path])),
    trawlError('CORPUS_BAD_LINE', /a\.jsonl\.gz:\d+: the gzip data/),
  );
});

test('a scan can be cancelled', async (t) => {
  const path = join(await tempFolder(t), 'a.jsonl');
  writeFileSync(path, '{"text":"x"}\n');
  await assert.rejects(scanCorpus(listCorpusFiles([path]), { signal: AbortSignal.abort() }), trawlError('CANCELLED'));
});
