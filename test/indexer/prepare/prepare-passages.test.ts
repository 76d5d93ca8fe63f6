import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  type PrepareOptions,
  type PrepareProgress,
  preparePassages,
} from '../../../indexer/prepare/prepare-passages.ts';
import { failsWith, readAll } from '../../corpus/corpus-dir.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { KILT_PAGE, numbered, writeLines } from './documents.ts';

/** About 5 MB: several batches for each worker. */
function manyDocuments(): unknown[] {
  return Array.from({ length: 3000 }, (_, i) => ({
    id: `d${i}`,
    title: `Title ${i}`,
    text: numbered(200 + (i % 300)),
  }));
}

async function documentsOf(path: string): Promise<string[]> {
  return (await readAll(path)).map(({ document }) => document);
}

test('rows are in the order of the documents with any number of threads and in every file format', async (t) => {
  const folder = await tempFolder(t);
  const documents = [writeLines(folder, 'documents.jsonl', manyDocuments())];
  const expected: string[] = [];
  for (let i = 0; i < 3000; i++) {
    const count = 200 + (i % 300);
    for (let n = 0; n * 100 < count; n++) {
      const text = numbered(Math.min(count, n * 100 + 100), n * 100);
      expected.push(
        `{"id":"${expected.length}","title":"Title ${i}","text":"${text}","doc_id":"d${i}","passage":${n}}`,
      );
    }
  }
  for (const extension of ['jsonl', 'jsonl.gz', 'jsonl.zst']) {
    const files: Buffer[] = [];
    for (const workers of [1, 3]) {
      const out = join(folder, `${workers}.${extension}`);
      const summary = await preparePassages({ documents, out, rule: 'words', workers });
      assert.equal(summary.passages, expected.length);
      assert.equal(summary.documents, 3000);
      files.push(readFileSync(out));
      assert.equal(summary.sha256, createHash('sha256').update(files.at(-1)!).digest('hex'));
      assert.equal(summary.writtenBytes, files.at(-1)!.length);
    }
    assert.ok(files[0]!.equals(files[1]!), extension);
    assert.deepEqual(await documentsOf(join(folder, `1.${extension}`)), expected);
  }
  const [plain, packed] = ['1.jsonl', '1.jsonl.gz'].map((name) => readFileSync(join(folder, name)));
  assert.ok(gunzipSync(packed!).equals(plain!));
});

test('documents are read from directories of WikiExtractor, .json files, gzip and zstd', async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'in', 'AA'), { recursive: true });
  mkdirSync(join(folder, 'in', 'AB'));
  const line = (title: string): string => `${JSON.stringify({ title, text: 'words' })}\n`;
  writeFileSync(join(folder, 'in', 'AA', 'wiki_00'), line('a'));
  writeFileSync(join(folder, 'in', 'AA', 'wiki_01.gz'), gzipSync(line('b')));
  writeFileSync(join(folder, 'in', 'AB', 'kilt_knowledgesource.json'), line('c'));
  writeFileSync(join(folder, 'in', 'README.md'), 'no document');
  const first = join(folder, 'one.jsonl.zst');
  await preparePassages({ documents: [join(folder, 'in')], out: first, rule: 'words' });
  const titles = (await readAll(first)).map(({ row }) => row['title']);
  assert.deepEqual(titles, ['a', 'b', 'c']);
  const second = join(folder, 'two.jsonl');
  await preparePassages({ documents: [first], out: second, rule: 'words', columns: false });
  assert.deepEqual(await documentsOf(second), [
    '{"id":"0","title":"a","text":"words"}',
    '{"id":"1","title":"b","text":"words"}',
    '{"id":"2","title":"c","text":"words"}',
  ]);
});

test('each rule writes the columns and the type of ids that programs for its corpus read', async (t) => {
  const folder = await tempFolder(t);
  const documents = [writeLines(folder, 'kilt.json', [KILT_PAGE, { wikipedia_title: 'T "x"', text: [numbered(100)] }])];
  const rows = async (
    name: string,
    options: Partial<PrepareOptions> & Pick<PrepareOptions, 'rule'>,
  ): Promise<string[]> => {
    const out = join(folder, name);
    await preparePassages({ documents, out, overwrite: true, ...options });
    return readFileSync(out, 'utf8').split('\n');
  };
  const tsv = await rows('a.tsv', { rule: 'r1-searcher' });
  assert.match(tsv[0]!, /^0\tAlbedo {3}Albedo Albedo is the measure/);
  assert.equal(tsv[1], `1\tT "x"   ${numbered(100)}`);
  const jsonl = await rows('a.jsonl', { rule: 'rag-r1' });
  assert.match(jsonl[0]!, /^\{"id":0,"contents":"Albedo {3}Albedo .*","doc_id":"290","passage":0,"section":""\}$/);
  assert.match(jsonl[1]!, /"doc_id":null,"passage":0,"section":""\}$/);
  const dpr = await rows('b.tsv', { rule: 'dpr' });
  assert.deepEqual(dpr.slice(0, 2), ['id\ttext\ttitle', `1\t"T ""x"" ${numbered(98)}"\t"T ""x"""`]);
  const wiki18 = await rows('b.jsonl', { rule: 'wiki-18', columns: false });
  assert.deepEqual(JSON.parse(wiki18[0]!), { id: '0', contents: `"T ""x"""\nT ""x"" ${numbered(98)}` });
  const flashrag = await rows('c.jsonl', { rule: 'flashrag-words', columns: false });
  assert.deepEqual(JSON.parse(flashrag[1]!), { id: 1, title: 'T "x"', contents: `T "x"\n${numbered(100)}` });
  for (const name of ['a.tsv', 'a.jsonl', 'b.tsv', 'b.jsonl', 'c.jsonl']) {
    assert.ok((await readAll(join(folder, name))).length > 0, `${name} is a corpus`);
  }
  assert.equal((await readAll(join(folder, 'b.tsv')))[0]?.row['title'], 'T "x"');
});

test('--id-from doc makes ids from the ids of the documents; a document without an id is a bad line', async (t) => {
  const folder = await tempFolder(t);
  const documents = [
    writeLines(folder, 'd.jsonl', [{ id: 7, text: numbered(150) }, { text: 'x' }, { id: 'b', text: 'y' }]),
  ];
  const out = join(folder, 'p.jsonl');
  const options = { documents, out, rule: 'words', idFrom: 'doc' } as const;
  await assert.rejects(preparePassages(options), failsWith('CORPUS_BAD_LINE', 'd.jsonl:2: ', '--id-from doc'));
  const summary = await preparePassages({ ...options, skipBadLines: true });
  assert.equal(summary.skippedLines, 1);
  assert.deepEqual(
    (await readAll(out)).map(({ id, row }) => [id, row['doc_id']]),
    [
      ['7-0', 7],
      ['7-1', 7],
      ['b-0', 'b'],
    ],
  );
});

test('the error names the first bad line in the order of the files, and no output is left', async (t) => {
  const folder = await tempFolder(t);
  const documents = [
    writeLines(folder, 'a.jsonl', manyDocuments()),
    join(folder, 'b.jsonl'),
    writeLines(folder, 'c.jsonl', [{ nothing: 1 }]),
  ];
  writeFileSync(
    documents[1]!,
    Buffer.concat([Buffer.from('\ufeff{"text":"x"}\n\n \n'), Buffer.from([0x7b, 0xff, 0x0a])]),
  );
  const out = join(folder, 'p.jsonl');
  await assert.rejects(
    preparePassages({ documents, out, rule: 'words', workers: 3 }),
    failsWith('CORPUS_BAD_LINE', 'b.jsonl:4: not valid UTF-8', '--skip-bad-lines'),
  );
  assert.deepEqual(readdirSync(folder).sort(), ['a.jsonl', 'b.jsonl', 'c.jsonl']);
  const summary = await preparePassages({ documents, out, rule: 'words', skipBadLines: true });
  assert.equal(summary.documents, 3001);
  assert.deepEqual(
    summary.skippedExamples.map((example) => example.slice(folder.length + 1, folder.length + 11)),
    ['b.jsonl:4:', 'c.jsonl:1:'],
  );
});

test('a truncated file of documents is an error even when bad lines are skipped', async (t) => {
  const folder = await tempFolder(t);
  const packed = gzipSync(
    manyDocuments()
      .map((value) => `${JSON.stringify(value)}\n`)
      .join(''),
  );
  const path = join(folder, 'd.jsonl.gz');
  writeFileSync(path, packed.subarray(0, packed.length - 100));
  const out = join(folder, 'p.jsonl');
  await assert.rejects(
    preparePassages({ documents: [path], out, rule: 'words', skipBadLines: true }),
    failsWith('CORPUS_BAD_LINE', 'd.jsonl.gz:', 'truncated or damaged'),
  );
  assert.deepEqual(readdirSync(folder), ['d.jsonl.gz']);
});

test('an output that exists, has an unknown extension, is an input or cannot be written is refused', async (t) => {
  const folder = await tempFolder(t);
  const documents = [writeLines(folder, 'd.jsonl', [{ text: 'x' }])];
  const refused = (out: string, ...expected: Parameters<typeof failsWith>): Promise<void> =>
    assert.rejects(preparePassages({ documents, out: join(folder, out), rule: 'words' }), failsWith(...expected));
  writeFileSync(join(folder, 'there.jsonl'), 'mine');
  await refused('there.jsonl', 'OUTPUT_EXISTS', '--overwrite');
  assert.equal(readFileSync(join(folder, 'there.jsonl'), 'utf8'), 'mine');
  await refused('p.txt', 'USAGE', '.jsonl');
  await refused('p.parquet', 'USAGE', '.jsonl');
  await refused('no/p.jsonl', 'OUTPUT_NOT_WRITABLE', 'parent');
  const input = { documents, out: documents[0]!, rule: 'words', overwrite: true } as const;
  await assert.rejects(preparePassages(input), failsWith('USAGE', 'one of the document files'));
  const tsv = { documents, out: join(folder, 'p.tsv'), rule: 'wiki-18' } as const;
  await assert.rejects(preparePassages(tsv), failsWith('USAGE', 'line ends'));
  const parquet = { documents: [join(folder, 'x.parquet')], out: join(folder, 'p.jsonl'), rule: 'words' } as const;
  writeFileSync(parquet.documents[0]!, 'PAR1');
  await assert.rejects(preparePassages(parquet), failsWith('CORPUS_FORMAT_UNKNOWN', 'JSON Lines'));
});

test('documents without any passage are an error, and no empty file is written', async (t) => {
  const folder = await tempFolder(t);
  const out = join(folder, 'p.tsv');
  for (const values of [[], [{ title: 'T', text: 'too short' }]]) {
    const documents = [writeLines(folder, 'd.jsonl', values)];
    await assert.rejects(preparePassages({ documents, out, rule: 'dpr' }), failsWith('CORPUS_EMPTY', 'no passages'));
  }
  assert.deepEqual(readdirSync(folder), ['d.jsonl']);
});

test('the partial file of a killed run is replaced, and of two simultaneous runs one fails', async (t) => {
  const folder = await tempFolder(t);
  const documents = [writeLines(folder, 'd.jsonl', manyDocuments())];
  const out = join(folder, 'p.jsonl');
  writeFileSync(`${out}.partial`, 'half a line');
  const results = await Promise.allSettled([
    preparePassages({ documents, out, rule: 'words', overwrite: true }),
    preparePassages({ documents, out, rule: 'words', overwrite: true }),
  ]);
  const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  assert.equal(failed.length, 1);
  for (const error of failed) failsWith('OUTPUT_EXISTS', /another run/i)(error);
  assert.equal(
    (await readAll(out)).length,
    results.flatMap((r) => (r.status === 'fulfilled' ? [r.value] : []))[0]!.passages,
  );
  assert.ok(!existsSync(`${out}.partial`));
});

test('an aborted run fails with CANCELLED and leaves no file', async (t) => {
  const folder = await tempFolder(t);
  const documents = [writeLines(folder, 'd.jsonl', manyDocuments())];
  const stop = new AbortController();
  const seen: PrepareProgress[] = [];
  const onProgress = (progress: PrepareProgress): void => {
    seen.push(progress);
    stop.abort();
  };
  const out = join(folder, 'p.jsonl');
  await assert.rejects(
    preparePassages({ documents, out, rule: 'words', onProgress, signal: stop.signal }),
    failsWith('CANCELLED'),
  );
  assert.equal(seen.length, 1);
  assert.deepEqual(readdirSync(folder), ['d.jsonl']);
});

test('the last progress report counts all bytes, documents and passages', async (t) => {
  const folder = await tempFolder(t);
  const documents = [writeLines(folder, 'd.jsonl', manyDocuments())];
  const seen: PrepareProgress[] = [];
  const out = join(folder, 'p.jsonl');
  const { writtenBytes, passages } = await preparePassages({
    documents,
    out,
    rule: 'words',
    onProgress: (p) => seen.push(p),
  });
  const last = seen.at(-1)!;
  assert.equal(last.readBytes, last.sizeBytes);
  assert.deepEqual([last.writtenBytes, last.passages, last.documents], [writtenBytes, passages, 3000]);
});

const KILT = 'kilt/filtered_kilt_sample_99.jsonl';

test('RAG-R1 makes 2,375 passages of 99 real KILT pages', { skip: withoutSharedData(KILT) }, async (t) => {
  const folder = await tempFolder(t);
  const documents = [sharedData(KILT)];
  const { documents: count, passages } = await preparePassages({
    documents,
    out: join(folder, 'p.tsv'),
    rule: 'rag-r1',
  });
  assert.deepEqual([count, passages], [99, 2375]);
});
