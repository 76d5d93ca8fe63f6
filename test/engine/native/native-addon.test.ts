import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isMainThread, Worker } from 'node:worker_threads';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import type { TrawlError } from '../../../src/base/errors.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { ADDON_PATH, type Addon } from '../../../src/engine/native/load-addon.ts';
import { fromNative } from '../../../src/engine/native/native-function.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { CodesWriter } from '../../../src/engine/vectors/codes-writer.ts';
import { collectGarbage } from '../../helpers/collect-garbage.ts';
import { faultLibrary } from '../../helpers/fault-library.ts';
import { runModule } from '../../helpers/run-module.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../../helpers/tiny-checkpoint.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { writeColumns } from '../columns/column-files.ts';
import { writeLexical } from '../lexical/lexical-files.ts';
import { normalRows, writeSource } from '../vectors/index-files.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
/** Without types, because the tests pass wrong arguments. */
const addon = (loaded.ok ? createRequire(import.meta.url)(ADDON_PATH) : {}) as Record<
  keyof Addon,
  (...args: unknown[]) => unknown
>;

test('setThreads takes counts from 1 to 4096; any other throws and leaves the engine as it was', { skip }, () => {
  const before = addon.threads();
  for (const wrong of [
    0,
    -1,
    1.5,
    4097,
    2 ** 32 + 1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '4',
    null,
    undefined,
    {},
    4n,
  ]) {
    assert.throws(() => addon.setThreads(wrong), {
      name: 'TypeError',
      code: 'BAD_ARGUMENT',
      message: /from 1 to 4096/,
    });
  }
  assert.equal(addon.threads(), before);
  assert.equal(addon.setThreads(3), 3);
  assert.equal(addon.setThreads(before), before);
});

/** The file of weights of a tiny BERT in bfloat16. */
async function bertWeights(folder: string): Promise<string> {
  const source = join(folder, 'checkpoint');
  for (const [name, bytes] of Object.entries(tinyCheckpoint())) {
    mkdirSync(dirname(join(source, name)), { recursive: true });
    writeFileSync(join(source, name), bytes);
  }
  const { folder: model } = await importModel(source, { out: join(folder, 'tiny'), precisions: ['bfloat16'] });
  return join(model, 'model-bfloat16.bin');
}

/** Whether an argument has the type of a right one. Of the objects, only arrays and arrays of numbers are compared. */
function hasTypeOf(right: unknown, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === typeof right;
  const isComparable = Array.isArray(value) || ArrayBuffer.isView(value);
  return isComparable && right?.constructor === value.constructor;
}

test('every function of the addon refuses arguments of another type with an error', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const { segments } = (await writeSource(folder, normalRows(20, 8, 1))).shards[0]!;
  const rows = { rows: 20, dtype: 'float32', segments };
  const index = await addon.openIndex(900_001, { metric: 'l2', dimension: 8, shards: [rows] });
  const writer = addon.createCodes(join(folder, 'codes.i8'), 'l2', 8);
  const values = new Float32Array(160);
  const [source] = await writeColumns(folder, new Array(20).fill({ n: 1 }), [{ name: 'n', type: 'number' }]);
  const { paths } = source!;
  const column = await addon.openColumn(900_002, paths, 'number');
  assert.ok(loaded.ok);
  const words = await writeLexical(folder, ['a b', 'b c', 'c'], loaded.kernel);
  const shards = words.shards.map(({ path }) => path);
  const lexical = await addon.openLexical(900_003, { shards });
  const lexicalWriter = addon.createLexical(join(folder, 'w.bm25'), 'standard');
  const bm25 = { k1: 0.9, b: 0.4, k1Factor: false };
  const weights = await bertWeights(folder);
  const bert = addon.openBert(weights, '');
  const watch = addon.watchFile(weights);
  /** A valid call of each function; one argument at a time is replaced. */
  const calls: [keyof Addon, unknown[]][] = [
    ['selectIsa', ['']],
    ['chosenIsas', ['']],
    ['isas', []],
    ['threads', []],
    ['encoderIsas', ['bfloat16']],
    ['setThreads', [2]],
    ['measurePeaks', [1_000_009, 2 ** 20]],
    ['cancel', [1_000_000]],
    ['openIndex', [1_000_016, { metric: 'l2', dimension: 8, shards: [rows] }]],
    ['indexFacts', [index]],
    ['gpus', ['libtrawl-missing.so.1']],
    ['uploadIndex', [1_000_020, index, 0, 'libtrawl-missing.so.1']],
    ['search', [1_000_001, index, { queries: values, count: 20, k: 3, isa: 'serial', filter: new Uint8Array(3) }]],
    ['createCodes', [join(folder, 'other.i8'), 'cosine', 8]],
    ['appendCodes', [1_000_002, writer, values, 20]],
    ['finishCodes', [1_000_003, writer]],
    ['makePrefilter', [1_000_004, join(folder, 'p.i8'), join(folder, 'codes.i8'), rows, 8, 0]],
    ['verifyCodes', [1_000_005, join(folder, 'codes.i8'), rows, 8]],
    ['verifyPrefilter', [1_000_006, join(folder, 'p.i8'), join(folder, 'codes.i8'), rows, 8]],
    ['openColumn', [1_000_017, paths, 'number']],
    ['filterRows', [1_000_008, [column], { type: 'exists', column: 0 }, 20]],
    ['firstNotHalf', [values]],
    ['toHalves', [values]],
    ['analyse', ['standard', 'a text']],
    ['openLexical', [1_000_018, { shards }]],
    ['lexicalFacts', [lexical]],
    ['searchLexical', [1_000_010, lexical, { queries: ['b'], k: 3, parameters: bm25, filter: new Uint8Array(1) }]],
    [
      'searchLexicalFields',
      [
        1_000_011,
        [{ name: 'text', index: lexical }],
        {
          queries: [{ type: 'term', field: 'text', term: 'b' }],
          k: 3,
          parameters: bm25,
          filter: new Uint8Array(1),
          count: 7,
          minScore: 0.5,
        },
      ],
    ],
    [
      'explainLexical',
      [1_000_012, lexical, { query: 'b', rows: Float64Array.of(0, 1), parameters: bm25, weight: 1, maxTerms: 10 }],
    ],
    ['createLexical', [join(folder, 'x.bm25'), 'standard']],
    ['appendLexical', [1_000_013, lexicalWriter, new Uint8Array([97, 98]), Float64Array.of(1, 2)]],
    ['finishLexical', [1_000_014, lexicalWriter]],
    ['verifyLexical', [1_000_015, shards[0]]],
    ['openBert', [weights, '']],
    ['bertFacts', [bert]],
    ['runBert', [bert, { ids: Int32Array.of(1, 2), types: Int32Array.of(0, 0), texts: 1, length: 2, threads: 1 }]],
    ['watchFile', [weights]],
    ['requireUnchanged', [watch]],
    ['closeWatch', [watch]],
    ['closeBert', [bert]],
    ['closeLexical', [lexical]],
    ['closeLexicalWriter', [lexicalWriter]],
    ['closeCodes', [writer]],
    ['closeColumn', [column]],
    ['closeIndex', [index]],
  ];
  assert.deepEqual(calls.map(([name]) => name).toSorted(), Object.keys(addon).toSorted(), 'every function is called');
  const wrongs = [
    Symbol('x'),
    true,
    Number.NaN,
    new Int32Array(1),
    new Float64Array(1),
    {},
    [],
    -1,
    1.5,
    2 ** 60,
    join(folder, 'nonsense'),
    null,
    () => 0,
    1n,
    new Uint8Array(1),
    new Float32Array(7),
  ];
  const called = async (name: keyof Addon, args: unknown[]) => addon[name](...args);
  let refused = 0;
  for (const [name, args] of calls) {
    for (const i of args.keys()) {
      for (const wrong of wrongs) {
        await called(name, args.with(i, wrong)).then(
          () =>
            assert.ok(hasTypeOf(args[i], wrong), `${name} accepts ${typeof wrong} ${String(wrong)} as argument ${i}`),
          (error) => {
            refused++;
            assert.ok(
              error instanceof Error && typeof (error as NodeJS.ErrnoException).code === 'string',
              `${name}: ${error}`,
            );
          },
        );
      }
      await assert.rejects(called(name, args.with(i, Symbol('x'))), Error, `${name}, argument ${i}`);
    }
  }
  assert.ok(refused > 250, `${refused} refusals`);
  for (const spec of [undefined, {}, { metric: 'l2', dimension: 8 }, { metric: 'l2', dimension: 8, shards: [7] }]) {
    assert.throws(() => addon.openIndex(900_004, spec), { name: 'TypeError', code: 'BAD_ARGUMENT' });
  }
  const withRows = (fields: object) => ({ metric: 'l2', dimension: 8, shards: [{ ...rows, ...fields }] });
  for (const fields of [
    { dtype: 'float64' },
    { segments: 3 },
    { segments: [{}] },
    { rows: -1 },
    { codes: 5 },
    { prefilter: {} },
  ]) {
    assert.throws(() => addon.openIndex(900_005, withRows(fields)), { name: 'TypeError', code: 'BAD_ARGUMENT' });
  }
  for (const liveRows of [new Uint8Array(2), new Float32Array(3), 'x', null]) {
    assert.throws(() => addon.openIndex(900_006, { ...withRows({}), liveRows }), {
      name: 'TypeError',
      message: /^liveRows/,
    });
  }
  // A handle of another object, and a closed one.
  const another = await addon.openIndex(900_007, withRows({}));
  assert.throws(() => addon.closeCodes(another), { code: 'BAD_ARGUMENT', message: /handle/ });
  assert.throws(() => addon.search(1_000_021, another, { queries: values, count: 19, k: 3, isa: 'serial' }), {
    code: 'BAD_ARGUMENT',
    message: /^queries must be count x dimension values/,
  });
  addon.closeIndex(another);
  assert.throws(() => addon.closeIndex(another), { code: 'BAD_ARGUMENT', message: /closed/ });
  assert.throws(() => addon.indexFacts(another), { code: 'BAD_ARGUMENT', message: /closed/ });
  assert.throws(() => addon.search(1_000_007, another, { queries: values, count: 20, k: 3, isa: 'serial' }), {
    code: 'BAD_ARGUMENT',
  });
});

test('a writer refuses a call while another one waits or runs, and accepts the next call after it', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const { segments } = (await writeSource(folder, normalRows(20_000, 64, 1))).shards[0]!;
  const index = await addon.openIndex(900_008, {
    metric: 'l2',
    dimension: 64,
    shards: [{ rows: 20_000, dtype: 'float32', segments }],
  });
  // Sixteen searches keep all threads of the addon busy, so the first call of the writer waits.
  const searches = Array.from({ length: 16 }, (_, i) =>
    (
      addon.search(3_000_000 + i, index, {
        queries: new Float32Array(64 * 1000),
        count: 1000,
        k: 1,
        isa: '',
      }) as Promise<unknown>
    ).catch((error: { code: string }) => error.code),
  );
  const writer = addon.createCodes(join(folder, 'codes.i8'), 'l2', 64);
  const rows = new Float32Array(64 * 100);
  const first = addon.appendCodes(2_000_000, writer, rows, 100);
  assert.throws(() => addon.appendCodes(2_000_001, writer, rows, 100), { code: 'BAD_ARGUMENT', message: /wait/ });
  assert.throws(() => addon.finishCodes(2_000_002, writer), { code: 'BAD_ARGUMENT', message: /wait/ });
  for (const i of searches.keys()) addon.cancel(3_000_000 + i);
  assert.equal(await first, 100);
  assert.equal(await addon.appendCodes(2_000_003, writer, rows, 100), 200);
  assert.equal(await addon.finishCodes(2_000_004, writer), 200);
  addon.closeCodes(writer);
  await Promise.all(searches);
});

/** An index of `rows` zero vectors, and a way to keep all threads of the addon busy until `release` is called. */
async function busyIndex(t: TestContext, rows: number): Promise<{ index: unknown; release: () => Promise<unknown> }> {
  const { segments } = (await writeSource(await tempFolder(t), { values: new Float32Array(64 * rows), dimension: 64 }))
    .shards[0]!;
  const spec = { metric: 'l2', dimension: 64, shards: [{ rows, dtype: 'float32', segments }] };
  const index = await addon.openIndex(900_009, spec);
  const searches = Array.from({ length: 16 }, (_, i) =>
    (
      addon.search(4_000_000 + i, index, {
        queries: new Float32Array(64 * 1000),
        count: 1000,
        k: 1,
        isa: '',
      }) as Promise<unknown>
    ).catch((error: { code: string }) => error.code),
  );
  const release = (): Promise<unknown> => {
    for (const i of searches.keys()) addon.cancel(4_000_000 + i);
    return Promise.all(searches);
  };
  return { index, release };
}

test('a filter is read where its search runs: a call does not copy it', { skip }, async (t) => {
  const rows = 20_000;
  const { index, release } = await busyIndex(t, rows);
  // 2,500 bytes are no whole number of words.
  const filters = [new Uint8Array(new ArrayBuffer(2_504), 0, 2_500), new Uint8Array(2_500)];
  const found = filters.map((filter, i) =>
    addon.search(5_000_000 + i, index, { queries: new Float32Array(64), count: 1, k: 3, isa: '', filter }),
  );
  for (const filter of filters) filter[100] = 0b1001;
  await release();
  for (const each of (await Promise.all(found)) as { counts: Uint32Array; rows: Float64Array }[]) {
    assert.deepEqual([each.counts[0], [...each.rows.subarray(0, 2)]], [2, [800, 803]]);
  }
});

test('a search that waits keeps its filter alive, though nothing else refers to it', { skip }, async (t) => {
  const rows = 20_000;
  const { index, release } = await busyIndex(t, rows);
  const search = (row: number): Promise<unknown> => {
    const filter = new RowBitmap(rows);
    filter.add(row);
    return addon.search(6_000_000 + row, index, {
      queries: new Float32Array(64),
      count: 1,
      k: 1,
      isa: '',
      filter: filter.bytes,
    }) as Promise<unknown>;
  };
  const found = Array.from({ length: 200 }, (_, i) => search(97 * i));
  collectGarbage();
  // Takes the memory of what was collected.
  const others = Array.from({ length: 200 }, () => new Uint8Array(2_500).fill(255));
  await release();
  for (const [i, each] of ((await Promise.all(found)) as { rows: Float64Array }[]).entries()) {
    assert.equal(each.rows[0], 97 * i);
  }
  assert.equal(others.length, 200);
});

test('a worker thread that ends while its filtered searches wait and run does not take the process with it', {
  skip,
}, async (t) => {
  const { shards } = await writeSource(await tempFolder(t), normalRows(20_000, 64, 1));
  const shard = { rows: 20_000, dtype: 'float32', segments: shards[0]!.segments };
  const { status, stdout, stderr } = runModule(`
    const { Worker } = await import('node:worker_threads');
    const code = \`import('#root/src/engine/native/kernel.js').then(async ({ loadKernel }) => {
      const { kernel } = loadKernel();
      const index = await kernel.openIndex({ metric: 'l2', dimension: 64, shards: [${JSON.stringify(shard)}] });
      for (let i = 0; i < 40; i++) {
        const request = { queries: new Float32Array(64 * 200), count: 200, k: 1, isa: '', filter: new Uint8Array(2500).fill(255) };
        kernel.search(index, request);
      }
      require('node:worker_threads').parentPort.postMessage('started');
    })\`;
    for (let i = 0; i < 5; i++) {
      const worker = new Worker(code, { eval: true });
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
      await worker.terminate();
    }
    console.log('alive');
  `);
  assert.equal(status, 0, stderr);
  assert.equal(stdout.trim(), 'alive');
});

test('indexes and columns are opened on the threads of the addon: the event loop does not wait for them', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const { release } = await busyIndex(t, 20_000);
  const { segments } = (await writeSource(folder, normalRows(20, 8, 1))).shards[0]!;
  const [column] = await writeColumns(folder, [{ n: 1 }], [{ name: 'n', type: 'number' }]);
  const words = await writeLexical(folder, ['a b'], undefined);
  const shards = [{ rows: 20, dtype: 'float32', segments }];
  const opened: string[] = [];
  const opening = [
    (addon.openIndex(7_000_000, { metric: 'l2', dimension: 8, shards }) as Promise<unknown>).then(() =>
      opened.push('index'),
    ),
    (addon.openLexical(7_000_001, { shards: words.shards.map(({ path }) => path) }) as Promise<unknown>).then(() =>
      opened.push('words'),
    ),
    (addon.openColumn(7_000_002, column!.paths, 'number') as Promise<unknown>).then(() => opened.push('column')),
  ];
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(opened, [], 'all threads of the addon are busy');
  await release();
  await Promise.all(opening);
  assert.deepEqual(opened.toSorted(), ['column', 'index', 'words']);
});

test('a path with the character NUL is refused, wherever a path is given', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const { segments } = (await writeSource(folder, normalRows(20, 8, 1))).shards[0]!;
  const rows = { rows: 20, dtype: 'float32', segments };
  const wrong = `${segments[0]!.path}\0.other`;
  const index = (shard: object) => [{ metric: 'l2', dimension: 8, shards: [{ ...rows, ...shard }] }];
  const calls: [keyof Addon, unknown[]][] = [
    ['openIndex', [8_000_000, ...index({ segments: [{ ...segments[0], path: wrong }] })]],
    ['openIndex', [8_000_001, ...index({ codes: wrong })]],
    ['openIndex', [8_000_002, ...index({ prefilter: wrong })]],
    ['createCodes', [wrong, 'l2', 8]],
    ['makePrefilter', [8_000_003, wrong, wrong, rows, 8, 0]],
    ['verifyCodes', [8_000_004, wrong, rows, 8]],
    ['verifyPrefilter', [8_000_005, wrong, wrong, rows, 8]],
    ['gpus', [wrong]],
    ['openLexical', [8_000_006, { shards: [wrong] }]],
    ['openLexical', [8_000_007, { shards: [], deleted: wrong }]],
    ['createLexical', [wrong, 'standard']],
    ['verifyLexical', [8_000_008, wrong]],
    ['openColumn', [8_000_009, [wrong], 'number']],
    ['openBert', [wrong, '']],
  ];
  for (const [name, args] of calls) {
    await assert.rejects(async () => addon[name](...args), { code: 'BAD_ARGUMENT', message: /NUL/ }, name);
  }
});

test('a size that no memory holds is refused or cut to the rows of the index, and takes no memory', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const { shards } = await writeSource(folder, normalRows(3, 8, 1));
  const words = await writeLexical(folder, ['a b', 'b c', 'c'], undefined);
  // In a process of its own, because the operating system ends one that takes too much.
  const { status, stdout, stderr } = runModule(`
    const { loadKernel } = await import('#root/src/engine/native/kernel.js');
    const { kernel } = loadKernel();
    const shards = ${JSON.stringify([{ rows: 3, dtype: 'float32', segments: shards[0]!.segments }])};
    const index = await kernel.openIndex({ metric: 'l2', dimension: 8, shards });
    const words = await kernel.openLexical({ shards: ${JSON.stringify(words.shards.map(({ path }) => path))} });
    const parameters = { k1: 0.9, b: 0.4, k1Factor: false };
    const queries = new Array(4096).fill('b');
    const trees = queries.map(() => ({ type: 'term', field: 'text', term: 'b' }));
    const fields = [{ name: 'text', index: words }];
    const places = ({ rows }) => rows.length;
    const sizes = [];
    for (const k of [2e9, 2 ** 52 + 1]) {
      sizes.push(
        places(await kernel.search(index, { queries: new Float32Array(8), count: 1, k, isa: '' })),
        places(await kernel.searchLexical(words, { queries, k, parameters })),
        places(await kernel.searchLexicalFields(fields, { queries: trees, k, parameters })),
        places(await kernel.searchLexicalFields(fields, { queries: trees, k, parameters, count: 1 })),
      );
    }
    let shared = { type: 'exists', column: 0 };
    for (let i = 0; i < 20; i++) shared = { type: 'and', tests: new Array(10).fill(shared) };
    const refused = await Promise.allSettled([
      kernel.measurePeaks(2 ** 45),
      kernel.filterRows([], { type: 'and', tests: [] }, 2 ** 50),
      (async () => kernel.filterRows([], shared, 0))(),
      (async () => kernel.createCodes(${JSON.stringify(join(folder, 'c.i8'))}, 'l2', 2 ** 40))(),
    ]);
    console.log(JSON.stringify({ sizes, refused: refused.map(({ reason }) => reason?.code) }));
  `);
  assert.equal(status, 0, stderr);
  const each = [3, 3 * 4096, 3 * 4096, 3 * 4096];
  assert.deepEqual(JSON.parse(stdout), { sizes: [...each, ...each], refused: new Array(4).fill('BAD_ARGUMENT') });
});

test('toHalves refuses a value that float16 cannot represent', { skip }, () => {
  assert.deepEqual(addon.toHalves(Float32Array.of(1, -2)), Uint16Array.of(0x3c00, 0xc000));
  for (const value of [1e30, 1e-30, 0.1, Number.NaN]) {
    assert.throws(() => addon.toHalves(Float32Array.of(1, value)), { name: 'TypeError', code: 'BAD_ARGUMENT' });
  }
});

test('an error of the operating system has errno and path, which decide the code and message of the TrawlError', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const absent = join(folder, 'absent.f32');
  const open = () =>
    addon.openIndex(900_010, {
      metric: 'l2',
      dimension: 1,
      shards: [{ rows: 1, dtype: 'float32', segments: [{ path: absent, offset: 0, bytes: 4 }] }],
    });
  await assert.rejects(async () => open(), { code: 'READ_FAILED', errno: constants.errno.ENOENT, path: absent });
  writeFileSync(join(folder, 'file'), '');
  const inFile = join(folder, 'file', 'codes.i8');
  assert.throws(() => addon.createCodes(inFile, 'l2', 8), {
    code: 'WRITE_FAILED',
    errno: constants.errno.ENOTDIR,
    path: inFile,
  });

  const failed = (code: string, name: keyof typeof constants.errno) =>
    fromNative(
      Object.assign(new Error('no words'), { code, item: -1, column: -1, errno: constants.errno[name], path: '/x' }),
    );
  for (const [code, errno, expected, message] of [
    ['WRITE_FAILED', 'ENOSPC', 'DISK_FULL', /^\/x: no space left/],
    ['WRITE_FAILED', 'EDQUOT', 'DISK_FULL', /^\/x: the disk quota is used up/],
    ['WRITE_FAILED', 'EROFS', 'OUTPUT_NOT_WRITABLE', /^\/x cannot be written: the file system is read-only/],
    ['WRITE_FAILED', 'ETIMEDOUT', 'OUTPUT_NOT_WRITABLE', /^no words\./],
    ['READ_FAILED', 'EACCES', 'INDEX_FILE_MISSING', /^no words\. Restore/],
    ['READ_FAILED', 'ENOMEM', 'OUT_OF_MEMORY', /^no words/],
  ] as const) {
    const error = failed(code, errno);
    assert.ok(trawlError(expected, message)(error));
    assert.equal((error as TrawlError).details['path'], '/x');
  }
});

test('the writer of codes has different errors for a full disk, a full quota and a read-only disk', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const library = faultLibrary(folder);
  if ('missing' in library) return t.skip(library.missing);
  for (const [name, code, message] of [
    ['ENOSPC', 'DISK_FULL', /no space left/],
    ['EDQUOT', 'DISK_FULL', /the disk quota is used up/],
    ['EROFS', 'OUTPUT_NOT_WRITABLE', /read-only/],
    ['EIO', 'OUTPUT_NOT_WRITABLE', /the disk reports an error/],
  ] as const) {
    for (const call of ['write', 'sync']) {
      const fault = { under: join(folder, 'codes.i8'), calls: call, at: 1, do: constants.errno[name] };
      const { stdout, stderr } = runModule(
        `
        const { loadKernel } = await import('#root/src/engine/native/kernel.js');
        const { CodesWriter } = await import('#root/src/engine/vectors/codes-writer.js');
        const writer = new CodesWriter(${JSON.stringify(join(folder, 'codes.i8'))}, { metric: 'l2', dimension: 8 }, loadKernel().kernel);
        try {
          await writer.append(new Float32Array(800));
          await writer.finish();
        } catch (error) {
          console.log(JSON.stringify([error.code, error.message, error.details]));
        }
        `,
        library.environment(fault),
      );
      const [found, text, details] = JSON.parse(stdout || '[]') as [string, string, { path: string }];
      assert.equal(found, code, `${name} at ${call}: ${stdout}${stderr}`);
      assert.match(text, message);
      assert.equal(details.path, join(folder, 'codes.i8'));
    }
  }
});

test('the error for a writer in a folder that does not exist names the path', { skip }, async (t) => {
  assert.ok(loaded.ok);
  const path = join(await tempFolder(t), 'none', 'codes.i8');
  assert.throws(
    () => new CodesWriter(path, { metric: 'l2', dimension: 8 }, loaded.kernel),
    (error) =>
      trawlError('OUTPUT_NOT_WRITABLE', /parent folder/)(error) && (error as TrawlError).message.includes(path),
  );
});

test('the engine starts its threads at the first search, in the number given to setThreads', {
  skip: skip || (process.platform === 'linux' ? false : 'only Linux has /proc/self/status'),
}, async (t) => {
  const { shards } = await writeSource(await tempFolder(t), normalRows(20, 8, 1));
  const shard = { rows: 20, dtype: 'float32', segments: shards[0]!.segments };
  const { status, stdout, stderr } = runModule(`
    const { readFileSync } = await import('node:fs');
    const { loadKernel } = await import('#root/src/engine/native/kernel.js');
    const { availableCores } = await import('#root/src/base/system/cores.js');
    const threads = () => Number(/^Threads:\\s*(\\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
    const before = threads();
    const { kernel } = loadKernel();
    const byDefault = kernel.threads() === availableCores();
    kernel.setThreads(37);
    kernel.setThreads(23);
    const index = await kernel.openIndex({ metric: 'l2', dimension: 8, shards: [${JSON.stringify(shard)}] });
    const set = threads();
    await kernel.search(index, { queries: new Float32Array(8), count: 1, k: 1, isa: '' });
    console.log(JSON.stringify({ byDefault, idle: set - before, searching: threads() - before }));
  `);
  assert.equal(status, 0, stderr);
  const { byDefault, idle, searching } = JSON.parse(stdout) as Record<string, number | boolean>;
  assert.deepEqual({ byDefault, idle }, { byDefault: true, idle: 1 }, 'one thread opened the index');
  // The pool of 23, and the thread that opened the index, or another one for the search if that one had not come to rest yet.
  assert.ok(searching === 23 + 1 || searching === 23 + 2, `${searching} threads`);
});

test('loading the engine in a worker thread does not change the number of threads', { skip }, async () => {
  assert.ok(loaded.ok && isMainThread);
  const before = loaded.kernel.threads();
  loaded.kernel.setThreads(before + 2);
  try {
    const kernelUrl = new URL('../../../src/engine/native/kernel.js', import.meta.url).href;
    const worker = new Worker(
      `import('${kernelUrl}').then(({ loadKernel }) => require('node:worker_threads').parentPort.postMessage(loadKernel().kernel.threads()))`,
      { eval: true },
    );
    const seen = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    assert.equal(seen, before + 2);
    await worker.terminate();
  } finally {
    loaded.kernel.setThreads(before);
  }
});
