import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { duplicateIds } from '../../../src/index/passages/duplicate-ids.ts';
import type { PassageToStore } from '../../../src/index/passages/sqlite-passage-writer.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { damagePages, writePassages } from './passage-files.ts';

const skip = process.platform !== 'linux' && 'needs /proc/self/fd';

type Id = PassageToStore['id'];

/** Passage files with these ids, split into as many files; lines are ten times the row, from 10. */
async function files(t: TestContext, ids: readonly Id[], count: number): Promise<string[]> {
  const folder = await tempFolder(t);
  return Array.from({ length: count }, (_, i) => {
    const path = join(folder, `${i}.sqlite`);
    const [first, end] = [Math.floor((ids.length * i) / count), Math.floor((ids.length * (i + 1)) / count)];
    const passages = ids.slice(first, end).map((id, k) => ({ id, line: 10 * (first + k + 1), document: '{}' }));
    writePassages(path, passages);
    return path;
  });
}

for (const count of [1, 2, 3, 20]) {
  test(`in ${count} files, ids that differ in type, case, form or beyond 2^53 are different`, async (t) => {
    const ids = [
      7,
      '7',
      '07',
      2n ** 53n,
      2n ** 53n + 1n,
      2n ** 63n,
      2n ** 63n + 1n,
      null,
      null,
      'a',
      'A',
      'é',
      'e\u0301',
    ];
    assert.deepEqual(duplicateIds(await files(t, ids, count)), { count: 0, examples: [] });
  });

  test(`in ${count} files, repeated ids are counted and shown with rows and lines in row order`, async (t) => {
    const ids = ['b', 'a', 'b', 5, 'b', 2n ** 53n + 1n, null, 'a', 5, 2n ** 53n + 1n, null];
    assert.deepEqual(duplicateIds(await files(t, ids, count)), {
      count: 5,
      examples: [
        { id: 'b', rows: [0, 2, 4], lines: [10, 30, 50] },
        { id: 'a', rows: [1, 7], lines: [20, 80] },
        { id: '5', rows: [3, 8], lines: [40, 90] },
        { id: '9007199254740993', rows: [5, 9], lines: [60, 100] },
      ],
    });
  });
}

for (const count of [1, 3]) {
  test(`in ${count} files, deleted rows do not count`, async (t) => {
    const paths = await files(t, ['a', 'b', 'a', 'b', 'a', 'c'], count);
    const liveRows = { has: (row: number) => row !== 0 && row !== 3 };
    assert.deepEqual(duplicateIds(paths, { liveRows }), {
      count: 1,
      examples: [{ id: 'a', rows: [2, 4], lines: [30, 50] }],
    });
    assert.deepEqual(duplicateIds(paths, { liveRows: { has: () => false } }), { count: 0, examples: [] });
  });
}

test('the number of examples is limited', async (t) => {
  const paths = await files(
    t,
    Array.from({ length: 3000 }, (_, i) => i % 30),
    4,
  );
  const { count, examples } = duplicateIds(paths);
  assert.equal(count, 2970);
  assert.equal(examples.length, 10);
  assert.deepEqual(examples[9], { id: '9', rows: [9, 39, 69, 99, 129], lines: [100, 400, 700, 1000, 1300] });
  assert.equal(duplicateIds(paths, { exampleCount: 2 }).examples.length, 2);
});

test('any ids in any number of files are counted as a set counts them', async (t) => {
  // The order of these characters differs between UTF-8 and UTF-16, which a wrong merge would miss.
  const id = fc.oneof(
    fc.constant(null),
    fc.bigInt({ min: -3n, max: 3n }),
    fc.string({
      unit: fc.constantFrom('a', 'b', '\u{e000}', '\u{ffff}', '\u{10000}', '\u{10ffff}', '\u{d7ff}'),
      maxLength: 3,
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(id, { maxLength: 40 }), fc.integer({ min: 1, max: 5 }), async (ids, count) => {
      const known = ids.filter((one) => one !== null).map((one) => `${typeof one} ${one}`);
      assert.equal(duplicateIds(await files(t, ids, count)).count, known.length - new Set(known).size);
    }),
    { numRuns: runs(12, 40) },
  );
});

test('a damaged file among several is named, and all files are closed', { skip }, async (t) => {
  const ids = Array.from({ length: 9000 }, (_, i) => `id-${i}`);
  const paths = await files(t, ids, 3);
  // A later page of the ids, which is read when the merge has begun.
  damagePages(paths[1]!, 29, 30);
  const openFiles = (): number => readdirSync('/proc/self/fd').length;
  const before = openFiles();
  for (let i = 0; i < 20; i++) {
    assert.throws(() => duplicateIds(paths), trawlError('INDEX_FILE_FOREIGN', /1\.sqlite: cannot be read/));
  }
  assert.ok(openFiles() < before + 10, `${openFiles()} files are open`);
});

test('the search for duplicates can be cancelled', async (t) => {
  const ids = Array.from({ length: 120_000 }, (_, i) => i);
  const signal = AbortSignal.abort();
  const paths = await files(t, ids, 2);
  assert.throws(() => duplicateIds(paths, { signal }), trawlError('CANCELLED'));
});
