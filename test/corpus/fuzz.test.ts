import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { readParquet } from '../../corpus/read-parquet.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { corpusDir } from './corpus-dir.ts';
import { rawFrame, zstdFrame } from './zstd-files.ts';

const ROWS = 60;

const JSONL = Buffer.from(
  Array.from(
    { length: ROWS },
    (_, i) => `{"id":"p${i}","title":"T\\u00e9 ${i}","text":"körper \\"${i}\\" end"}\n`,
  ).join(''),
);
const TSV = Buffer.from(
  `id\ttext\ttitle\n${Array.from({ length: ROWS }, (_, i) => `${i}\t"a ""quoted"" text ${i}"\tTitle ${i}\n`).join('')}`,
);

type Random = () => number;

/** Changes, removes, inserts or duplicates some bytes, or truncates the file. */
function mutate(bytes: Buffer, random: Random): Buffer {
  let mutated = Buffer.from(bytes);
  for (let left = 1 + Math.floor(random() * 3); left > 0; left--) {
    const at = Math.floor(random() * mutated.length);
    const length = Math.floor(random() * random() * 200);
    const before = mutated.subarray(0, at);
    switch (Math.floor(random() * 6)) {
      case 0:
        mutated[at]! ^= 1 << Math.floor(random() * 8);
        break;
      case 1:
        mutated[at] = Math.floor(random() * 256);
        break;
      case 2:
        mutated = Buffer.concat([before, mutated.subarray(at + length)]);
        break;
      case 3:
        mutated = Buffer.concat([before, Buffer.from('"\t\n\r\0{}\xff\ufeff'), mutated.subarray(at)]);
        break;
      case 4:
        mutated = Buffer.concat([before, mutated.subarray(at, at + length), mutated.subarray(at)]);
        break;
      default:
        if (random() < 0.3) mutated = Buffer.from(before);
    }
    if (mutated.length === 0) return mutated;
  }
  return mutated;
}

interface Read {
  readonly passages: number;
  readonly skipped: number;
}

/** Counts the passages of a corpus, skipping bad lines; null if the file was refused with a TrawlError. */
async function read(path: string, format: string, what: string): Promise<Read | null> {
  let [passages, skipped] = [0, 0];
  const onSkipped = (): void => {
    skipped += 1;
  };
  try {
    for await (const { document } of openCorpus([path], { format, skipBadLines: true, onSkipped })) {
      JSON.parse(document);
      passages += 1;
    }
  } catch (error) {
    assert.ok(error instanceof TrawlError && error.code !== 'INTERNAL', `${what}: ${String(error)}`);
    return null;
  }
  return { passages, skipped };
}

/** Counts the lines that are not blank, independently of the reader. */
function jsonLines(text: Buffer): number {
  const lines = text
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .split('\n');
  return lines.filter((line) => !/^[ \t\r]*$/.test(line)).length;
}

function tsvLines(text: Buffer): number {
  const lines = text
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .split(/\r\n|\r|\n/);
  return lines.filter((line) => !/^ *$/.test(line)).length;
}

const TEXT_CASES: readonly (readonly [string, Buffer, (mutated: Buffer, found: Read) => void])[] = [
  ['jsonl', JSONL, (mutated, found) => assert.equal(found.passages + found.skipped, jsonLines(mutated))],
  [
    'tsv',
    TSV,
    (mutated, found) => {
      // The header is no row, unless it was damaged.
      const missing = tsvLines(mutated) - found.passages - found.skipped;
      assert.ok(missing === 0 || missing === 1, `${missing} missing`);
    },
  ],
  [
    'jsonl.gz',
    gzipSync(JSONL),
    (mutated, found) => assert.equal(found.passages + found.skipped, jsonLines(gunzipSync(mutated))),
  ],
  [
    'jsonl.gz',
    Buffer.concat([gzipSync(JSONL.subarray(0, 500)), gzipSync(JSONL.subarray(500))]),
    (mutated, found) => assert.equal(found.passages + found.skipped, jsonLines(gunzipSync(mutated))),
  ],
  // The frames have checksums. The second may be missing entirely, which leaves 500 bytes.
  [
    'jsonl.zst',
    Buffer.concat([rawFrame(JSONL.subarray(0, 500)), rawFrame(JSONL.subarray(500))]),
    (_, found) => assert.ok(found.passages + found.skipped >= jsonLines(JSONL.subarray(0, 500))),
  ],
  ['jsonl.zst', zstdFrame(JSONL), () => undefined],
  ['tsv.zst', zstdFrame(TSV), () => undefined],
];

test('hundreds of damaged text files give a TrawlError, or every line is a passage or a bad line', async (t) => {
  const dir = corpusDir(t);
  const random = seededRandom(20181220);
  const outcomes = { read: 0, refused: 0 };
  for (const [position, [format, bytes, check]] of TEXT_CASES.entries()) {
    for (let round = 0; round < 90; round++) {
      const mutated = mutate(bytes, random);
      const found = await read(dir.write(`c${position}`, mutated), format, `${format}, round ${round}`);
      if (found === null) outcomes.refused += 1;
      else {
        outcomes.read += 1;
        check(mutated, found);
      }
    }
  }
  assert.ok(outcomes.read > 150 && outcomes.refused > 150, JSON.stringify(outcomes));
});

test('damaged Parquet files give a TrawlError or all rows of the footer, and reading always ends', async (t) => {
  const dir = corpusDir(t);
  const random = seededRandom(20181221);
  const text = Array.from({ length: ROWS }, (_, i) => `passage ${i % 7}`);
  const id = Array.from({ length: ROWS }, (_, i) => `${i}`);
  const plain = parquetWriteBuffer({
    columnData: [
      { name: 'id', data: id },
      { name: 'text', data: text },
    ],
    rowGroupSize: 25,
  });
  const outcomes = { read: 0, refused: 0 };
  for (let round = 0; round < 30; round++) {
    const mutated = mutate(Buffer.from(plain), random);
    const path = dir.write('c.parquet', mutated);
    let rows = 0;
    try {
      const context = { path, maxLineBytes: 1e6, onRead: () => undefined };
      for await (const batch of readParquet(context, { timeLimitMs: 2000 })) rows += batch.length;
      outcomes.read += 1;
    } catch (error) {
      assert.ok(error instanceof TrawlError && error.code !== 'INTERNAL', `round ${round}: ${String(error)}`);
      outcomes.refused += 1;
      continue;
    }
    assert.ok(rows === ROWS, `round ${round}: ${rows} rows`);
  }
  assert.ok(outcomes.refused > 10, JSON.stringify(outcomes));
});
