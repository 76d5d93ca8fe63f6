import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { VerifyReport } from '../../indexer/verify/index-verifier.ts';
import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { readIndexManifest, readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { withChecksum } from '../../src/index/manifest/write-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { fileFolder } from '../cli/run-trawl.ts';
import { runs } from '../helpers/runs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { sha256Of } from '../search/opening/sha256-of.ts';
import { TINY_DELETED_ROW, TINY_ROWS, writeTinyIndex } from '../search/tiny-index.ts';
import { build, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

const loaded = loadKernel();
const DIMENSION = 128;
/** Changed bytes. */
const COUNT = runs(60, 250);
const REMEDY = /\b(again|[Rr]estore|Use the program)\b/;

/** The hash of a text is too short for all values: it is repeated with another sign. */
class WideEncoder extends FakeTextEncoder {
  readonly #salt: string;

  constructor(salt = '') {
    super({ model: { dimension: DIMENSION } });
    this.#salt = salt;
  }

  override vectorOf(text: string): Float32Array {
    const hash = Buffer.from(sha256Of(Buffer.from(this.#salt + text)), 'hex');
    return Float32Array.from({ length: DIMENSION }, (_, i) => (hash[i % 32]! - 128) / (128 + Math.floor(i / 32)));
  }
}

function sentences({ problems }: VerifyReport): string {
  return problems.map(({ message }) => message).join('\n');
}

const made = await fileFolder();
let original: Promise<string> | undefined;

/** A copy of an index in three shards with deleted rows, and with codes and prefilters if the engine is available. */
async function wholeIndex(t: TestContext): Promise<string> {
  original ??= makeIndex(made, 90);
  const copy = join(await tempFolder(t), 'index');
  cpSync(await original, copy, { recursive: true });
  return copy;
}

async function makeIndex(folder: string, corpusRows: number): Promise<string> {
  const rows = Array.from({ length: corpusRows }, (_, id) => ({
    id: `p-${id}`,
    title: `Title ${id % 7}`,
    text: `The passage of row ${id}. `.repeat(1 + (id % 5)),
    url: `https://example.org/${id}`,
  }));
  const out = join(folder, 'index');
  await build({
    corpus: writeCorpus(folder, { 'a.jsonl': rows.slice(0, 50), 'b.jsonl.gz': rows.slice(50) }),
    out,
    encoder: new WideEncoder(),
    shardRows: Math.ceil(corpusRows / 3),
    ...(loaded.ok ? { kernel: loaded.kernel } : {}),
  });
  if (loaded.ok) for (const { path } of readIndexManifest(out).shards) await addPrefilter(join(out, path));
  remove(out, [3, 40, 41]);
  return out;
}

/** A build makes none for so few rows. */
async function addPrefilter(folder: string): Promise<void> {
  assert.ok(loaded.ok);
  const shard = readShardManifest(folder);
  const segments = shard.vectors.map((segment) => ({ ...segment, path: join(folder, segment.path) }));
  const path = join(folder, 'prefilter.i8');
  const rows = { rows: shard.rows, dtype: 'float32' as const, segments };
  await loaded.kernel.makePrefilter(path, join(folder, 'codes.i8'), rows, DIMENSION, 64);
  const bytes = readFileSync(path);
  const files = [...shard.files, { path: 'prefilter.i8', bytes: bytes.length, sha256: sha256Of(bytes) }];
  rewrite(join(folder, 'shard.json'), { ...shard, files, prefilter: { path: 'prefilter.i8', reason: 'for a test' } });
}

function remove(folder: string, rows: readonly number[]): void {
  const manifest = readIndexManifest(folder);
  const bytes = new Uint8Array(Math.ceil(manifest.rows / 8));
  for (const row of rows) bytes[Math.floor(row / 8)]! |= 1 << (row % 8);
  writeFileSync(join(folder, 'tombstones.bin'), bytes);
  const record = { path: 'tombstones.bin', bytes: bytes.length, sha256: sha256Of(bytes), rows: rows.length };
  rewrite(join(folder, 'manifest.json'), { ...manifest, tombstones: record });
}

function rewrite(path: string, manifest: object): void {
  writeFileSync(path, `${JSON.stringify(withChecksum(manifest), null, 2)}\n`);
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
}

/** The content of a file: the fields of a manifest, the rows of a passage file, the bytes of any other. */
function contentOf(path: string): unknown {
  if (path.endsWith('.json')) {
    const { checksum: _, ...fields } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    return fields;
  }
  if (!path.endsWith('.sqlite')) return readFileSync(path);
  const file = new PassageFile(path);
  try {
    const rows = [...file.passages()].map(({ row, id, document }) => ({ row, id, document }));
    return { rows, found: ['id', 'url', 'title'].map((by) => file.find(by as 'id', 'p-7', 9)), sha256: file.sha256 };
  } finally {
    file.close();
  }
}

test('an intact index has no problem, and embedding a sample again gives the stored vectors, bit for bit', async (t) => {
  const folder = await wholeIndex(t);
  const steps = new Set<string>();
  let share = 0;
  const report = await verifyIndex(folder, {
    sample: 20,
    openEncoder: async () => new WideEncoder(),
    onProgress: ({ step, doneBytes, totalBytes }) => {
      steps.add(step.split(' of ')[0]!);
      assert.ok(doneBytes / totalBytes >= share, 'progress never goes back');
      share = doneBytes / totalBytes;
    },
  });
  assert.deepEqual(report, {
    problems: [],
    notChecked: loaded.ok ? [] : report.notChecked,
    rows: 90,
    shards: 3,
    sample: { passages: 20, equal: 20, largestDistance: 0 },
    analysed: null,
  });
  assert.ok(share > 0.9 && share <= 1.001, `${share}`);
  assert.ok(steps.has('checksum') && steps.has('vectors') && steps.has('passages'));
});

test('a changed byte anywhere in any file is found, and its file named, unless the content is the same', async (t) => {
  const folder = await wholeIndex(t);
  const files = filesOf(folder);
  const fileTypes = ['manifest.json', 'tombstones.bin', 'shard.json', 'passages.sqlite', 'vectors.faiss'];
  if (loaded.ok) fileTypes.push('codes.i8', 'prefilter.i8');
  for (const fileType of fileTypes)
    assert.ok(
      files.some((path) => path.endsWith(fileType)),
      fileType,
    );
  const contents = new Map(files.map((path) => [path, contentOf(join(folder, path))]));
  let unseen = 0;
  const place = fc.nat(2 ** 30);
  // Files of each type equally often.
  const file = fc
    .constantFrom(...fileTypes)
    .chain((fileType) => fc.constantFrom(...files.filter((path) => path.endsWith(fileType))));
  await fc.assert(
    fc.asyncProperty(file, place, fc.integer({ min: 1, max: 255 }), async (name, where, change) => {
      const path = join(folder, name);
      const whole = readFileSync(path);
      const changed = Buffer.from(whole);
      changed[where % whole.length]! ^= change;
      writeFileSync(path, changed);
      try {
        const { problems, notChecked } = await verifyIndex(folder);
        if (notChecked.some((sentence) => sentence.startsWith(`${path}: it has no checksum`))) return;
        if (problems.length === 0) {
          unseen++;
          assert.ok(isDeepStrictEqual(contentOf(path), contents.get(name)), `the content of ${name} changed`);
          return;
        }
        const messages = problems.map(({ message }) => message);
        assert.ok(
          problems.some((found) => found.file === path),
          messages.join('\n'),
        );
        for (const message of messages) assert.match(message, REMEDY);
      } finally {
        writeFileSync(path, whole);
        // SQLite may have created one if the changed header asked for a log.
        for (const end of ['-wal', '-shm', '-journal']) rmSync(`${path}${end}`, { force: true });
      }
    }),
    { numRuns: COUNT },
  );
  t.diagnostic(`${unseen} of ${COUNT} changed bytes did not affect the content`);
  assert.ok(unseen < 0.5 * COUNT);
});

test('a changed look-up expression is found, even if it gives the same result for all rows', async (t) => {
  const folder = await wholeIndex(t);
  const path = join(folder, 'shard-00001', 'passages.sqlite');
  const bytes = readFileSync(path);
  // Every row has a title, so an expression that differs only for rows without one gives the same entries.
  for (let at = bytes.indexOf('char(10)'); at >= 0; at = bytes.indexOf('char(10)', at + 1)) {
    bytes[at + 'char(1'.length]! ^= 1;
  }
  writeFileSync(path, bytes);
  assert.match(
    sentences(await verifyIndex(folder)),
    /shard-00001\/passages\.sqlite: passages cannot be looked up by title \(no query solution\)/,
  );
});

test('every truncated or missing file is named, in one run', async (t) => {
  const folder = await wholeIndex(t);
  truncateSync(join(folder, 'shard-00000', 'vectors.faiss'), 500);
  rmSync(join(folder, 'shard-00001', 'passages.sqlite'));
  truncateSync(join(folder, 'tombstones.bin'), 3);
  const bytes = readFileSync(join(folder, 'shard-00002', 'vectors.faiss'));
  bytes[700]! ^= 1;
  writeFileSync(join(folder, 'shard-00002', 'vectors.faiss'), bytes);
  const report = await verifyIndex(folder);
  for (const path of [
    'shard-00000/vectors.faiss',
    'shard-00001/passages.sqlite',
    'tombstones.bin',
    'shard-00002/vectors.faiss',
  ]) {
    assert.ok(
      report.problems.some(({ file }) => file === join(folder, path)),
      `${path}: ${sentences(report)}`,
    );
  }
  for (const { message } of report.problems) assert.match(message, REMEDY);
  assert.deepEqual(
    report.notChecked.filter((sentence) => /other files of the shard were not checked/.test(sentence)).length,
    2,
  );
});

test('quick checks sizes, headers, manifests and deleted rows, and does not find a changed byte within a file', async (t) => {
  const folder = await wholeIndex(t);
  assert.deepEqual(await verifyIndex(folder, { quick: true }), {
    problems: [],
    notChecked: [],
    rows: 90,
    shards: 3,
    sample: null,
    analysed: null,
  });
  const vectors = join(folder, 'shard-00000', 'vectors.faiss');
  const bytes = readFileSync(vectors);
  bytes[700]! ^= 1;
  writeFileSync(vectors, bytes);
  assert.deepEqual((await verifyIndex(folder, { quick: true })).problems, []);
  assert.match(sentences(await verifyIndex(folder)), /vectors\.faiss: sha256 is/);
  truncateSync(vectors, 700);
  assert.match(
    sentences(await verifyIndex(folder, { quick: true })),
    /vectors\.faiss: has 700 bytes, but the manifest says/,
  );
});

test('a bitmap with another number of deleted rows, or with rows beyond the index, is a problem', async (t) => {
  const folder = join(await tempFolder(t), 'index');
  await writeTinyIndex(folder);
  const manifest = readIndexManifest(folder);
  const path = join(folder, 'tombstones.bin');
  const write = (bytes: Uint8Array, rows: number): void => {
    writeFileSync(path, bytes);
    const tombstones = { path: 'tombstones.bin', bytes: bytes.length, sha256: sha256Of(bytes), rows };
    rewrite(join(folder, 'manifest.json'), { ...manifest, tombstones });
  };
  write(Uint8Array.of(1 << TINY_DELETED_ROW, 0), 1);
  assert.deepEqual((await verifyIndex(folder)).problems, []);
  write(Uint8Array.of(1 << TINY_DELETED_ROW, 0), 2);
  assert.match(sentences(await verifyIndex(folder)), /tombstones\.bin: 1 rows are deleted, the manifest says 2/);
  write(Uint8Array.of(1, 0x80), 1);
  assert.match(
    sentences(await verifyIndex(folder, { quick: true })),
    new RegExp(`tombstones\\.bin: row 15 is deleted, but the index has only ${TINY_ROWS} rows`),
  );
});

test('vectors of other passages are found by embedding a sample, and their rows are named', async (t) => {
  const folder = await wholeIndex(t);
  const withEncoder = (encoder: FakeTextEncoder, sample: number): Promise<VerifyReport> =>
    verifyIndex(folder, { sample, openEncoder: async () => encoder });
  const other = await withEncoder(new WideEncoder('another model: '), 30);
  assert.match(
    sentences(other),
    /passages\.sqlite: the passage of row \d+, embedded again, has a relative distance of \d\.\d+/,
  );
  assert.match(sentences(other), /30 of 30 passages, embedded again, are too far from their vectors/);
  assert.equal(other.problems.length, 6);
  assert.equal(other.sample!.equal, 0);

  // Two rows of a shard are swapped and every checksum is corrected: only the vectors are wrong.
  const shardFolder = join(folder, 'shard-00001');
  const path = join(shardFolder, 'vectors.faiss');
  const bytes = readFileSync(path);
  const row = (i: number): Buffer => bytes.subarray(45 + i * 4 * DIMENSION, 45 + (i + 1) * 4 * DIMENSION);
  const first = Buffer.from(row(5));
  row(6).copy(bytes, 45 + 5 * 4 * DIMENSION);
  first.copy(bytes, 45 + 6 * 4 * DIMENSION);
  writeFileSync(path, bytes);
  const shard = readShardManifest(shardFolder);
  const files = shard.files
    .filter((file) => !file.path.endsWith('.i8'))
    .map((file) => (file.path === 'vectors.faiss' ? { ...file, sha256: sha256Of(bytes) } : file));
  const { prefilter: _, ...rest } = shard;
  rewrite(join(shardFolder, 'shard.json'), { ...rest, codes: null, files });
  assert.deepEqual((await verifyIndex(folder)).problems, [], 'not seen without the model');
  const swapped = await withEncoder(new WideEncoder(), 90);
  assert.deepEqual(
    swapped.problems.map(({ file, message }) => [file, /of row (\d+)/.exec(message)?.[1]]),
    [
      [join(shardFolder, 'passages.sqlite'), '5'],
      [join(shardFolder, 'passages.sqlite'), '6'],
    ],
  );
  assert.equal(swapped.sample!.equal, 88);
});

test('a sample is read in pieces, each when it is embedded', async (t) => {
  const folder = await wholeIndex(t);
  const read = t.mock.method(PassageFile.prototype, 'document');
  const encoder = new WideEncoder();
  const pieces: number[] = [];
  const encode = encoder.encode.bind(encoder);
  encoder.encode = (...args: Parameters<typeof encode>) => {
    pieces.push(read.mock.callCount());
    read.mock.resetCalls();
    return encode(...args);
  };
  const { sample } = await verifyIndex(folder, { sample: 90, openEncoder: async () => encoder });
  assert.equal(sample!.passages, 90);
  assert.equal(
    pieces.reduce((sum, piece) => sum + piece, 0),
    90,
  );
  assert.ok(
    pieces.every((piece) => piece > 0 && piece <= 32),
    `${pieces}`,
  );
});

test('a missing model is reported and not a problem, unless the model is required', async (t) => {
  const folder = await wholeIndex(t);
  const openEncoder = async (): Promise<never> => {
    throw new TrawlError('MODEL_NOT_FOUND', 'Model "fake" not found.');
  };
  const report = await verifyIndex(folder, { sample: 5, openEncoder });
  assert.deepEqual(report.problems, []);
  assert.match(
    report.notChecked.join('\n'),
    /passages and vectors belong together was not checked: Model "fake" not found/,
  );
  const steps: string[] = [];
  const required = verifyIndex(folder, {
    sample: 5,
    openEncoder,
    requireEncoder: true,
    onProgress: ({ step }) => steps.push(step),
  });
  await assert.rejects(required, trawlError('MODEL_NOT_FOUND'));
  assert.deepEqual(steps, [], 'it stops before anything is read');
});

test('a manifest without a checksum is reported as not checked', async (t) => {
  const folder = join(await tempFolder(t), 'index');
  await writeTinyIndex(folder);
  const { problems, notChecked } = await verifyIndex(folder);
  assert.deepEqual(problems, []);
  assert.equal(notChecked.filter((sentence) => /it has no checksum/.test(sentence)).length, 3);
});

test('a missing index and a stopped call are errors, not problems', async (t) => {
  const folder = await wholeIndex(t);
  await assert.rejects(verifyIndex(join(folder, 'shard-00000')), trawlError('INDEX_NOT_FOUND'));
  const controller = new AbortController();
  const stopped = verifyIndex(folder, {
    signal: controller.signal,
    onProgress: ({ step }) => {
      if (step.startsWith('vectors')) controller.abort('SIGINT');
    },
  });
  await assert.rejects(stopped, trawlError('CANCELLED'));
});

test('reading an index changes none of its files and creates no new ones', async (t) => {
  const folder = await wholeIndex(t);
  const copy = join(await tempFolder(t), 'copy');
  cpSync(folder, copy, { recursive: true });
  await verifyIndex(folder, { sample: 10, openEncoder: async () => new WideEncoder() });
  assert.deepEqual(filesOf(folder).sort(), filesOf(copy).sort());
  for (const path of filesOf(copy)) assert.deepEqual(readFileSync(join(folder, path)), readFileSync(join(copy, path)));
  assert.ok(existsSync(join(folder, 'tombstones.bin')));
  assert.equal(openIndexDirectory(folder).manifest.tombstones!.rows, 3);
});
