import assert from 'node:assert/strict';
import {
  appendFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CopySource } from '../../../indexer/sync/copy-source.ts';
import { folderSource } from '../../../indexer/sync/folder-source.ts';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { FileLock } from '../../../src/base/system/file-lock.ts';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { fileFolder, sampleIndex } from '../../cli/run-trawl.ts';
import { smallDisk } from '../../helpers/small-disk.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { contentsOf, sync } from './sync-helpers.ts';

const folder = await fileFolder();
const index = await sampleIndex(folder);
/** The same index with some passages removed: a manifest and a bitmap differ, the shard is the same. */
const changed = join(folder, 'changed');
cpSync(index, changed, { recursive: true });
await removePassages(changed, ['s-0001', 's-0002'], {});
const [old, next] = [index, changed].map((each) => readIndexManifest(each).generation);

let made = 0;
function destination(): string {
  mkdirSync(join(folder, `to${++made}`));
  return join(folder, `to${made}`, 'copy');
}

test('a copy has the files of the source, and a second run finds them there', async () => {
  const to = destination();
  const first = await sync(index, to);
  assert.equal(first.state, 'copied');
  assert.equal(first.generation, old);
  assert.equal(first.files.copied, first.files.all);
  assert.deepEqual(contentsOf(to), contentsOf(index));
  openIndexDirectory(to);
  const again = await sync(index, to);
  assert.equal(again.state, 'current');
  assert.equal(again.bytes.transferred, 0);
});

test('of a newer generation only the changed files are copied, and the link leads to the old copy until then', async () => {
  const to = destination();
  await sync(index, to);
  const before = readlinkSync(to);
  let seen = 0;
  const report = await sync(async () => {
    const source = await folderSource(changed)(new AbortController().signal);
    return {
      ...source,
      async *read(path, offset, signal) {
        seen++;
        assert.equal(readlinkSync(to), before);
        yield* source.read(path, offset, signal);
      },
    } satisfies CopySource;
  }, to);
  assert.equal(seen, 1, 'the bitmap of the deleted rows');
  assert.deepEqual([report.previous, report.generation], [old, next]);
  assert.equal(report.files.copied, 1);
  assert.deepEqual(contentsOf(to), contentsOf(changed));
  assert.notEqual(readlinkSync(to), before);
  // The old copy is still whole, for servers that have not reloaded and to go back to.
  assert.deepEqual(contentsOf(join(to, '..', before)), contentsOf(index));
  const back = await sync(index, to);
  assert.equal(back.bytes.transferred, 0);
  assert.equal(readlinkSync(to), before);
});

test('an index that is no copy is replaced by a link, and its files are used', async () => {
  const to = destination();
  cpSync(index, to, { recursive: true });
  const report = await sync(changed, to);
  assert.ok(lstatSync(to).isSymbolicLink());
  assert.equal(report.files.copied, 1);
  assert.deepEqual(contentsOf(to), contentsOf(changed));
});

test('only the current copy and the newest others are kept', async () => {
  const to = destination();
  await sync(index, to, { keep: 1 });
  const report = await sync(changed, to, { keep: 1 });
  assert.equal(report.removed.length, 1);
  const folders = readdirSync(`${to}.copies`, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual(
    folders.map(({ name }) => name),
    [readlinkSync(to).split('/').at(-1)],
  );
  assert.deepEqual(contentsOf(to), contentsOf(changed));
});

test("a user's own files beside the copies are left alone", async () => {
  const to = destination();
  await sync(index, to);
  const own = join(`${to}.copies`, 'mine');
  cpSync(index, own, { recursive: true });
  mkdirSync(`${own}.partial`);
  writeFileSync(join(`${to}.copies`, 'questions.jsonl'), '{}');
  const report = await sync(changed, to, { keep: 1 });
  assert.equal(report.removed.length, 1);
  assert.deepEqual(contentsOf(own), contentsOf(index));
  assert.ok(existsSync(`${own}.partial`));
  assert.ok(existsSync(join(`${to}.copies`, 'questions.jsonl')));
});

test('a folder in the place of the copies that sync did not make is refused', async () => {
  const to = destination();
  mkdirSync(`${to}.copies`);
  writeFileSync(join(`${to}.copies`, 'notes.txt'), 'x');
  await assert.rejects(sync(index, to), trawlError('INDEX_EXISTS', /\.copies exists.*did not make it/));
});

test('the index that was at the destination is kept, and can be copied back without a transfer', async () => {
  const to = destination();
  cpSync(index, to, { recursive: true });
  await sync(changed, to, { keep: 1 });
  const original = join(`${to}.copies`, 'original');
  assert.deepEqual(contentsOf(original), contentsOf(index));
  const notes: string[] = [];
  const report = await sync(original, to, { keep: 1, note: (text) => notes.push(text) });
  assert.deepEqual([report.bytes.transferred, report.generation, notes], [0, old, []]);
  assert.equal(readlinkSync(to).split('/').at(-1), 'original');
  await sync(changed, to, { keep: 1 });
  assert.deepEqual(contentsOf(original), contentsOf(index), 'sync did not copy it, so it does not remove it');
});

test('a copy that is the source of another copy is kept', async () => {
  const to = destination();
  await sync(index, to);
  const source = join(`${to}.copies`, readlinkSync(to).split('/').at(-1)!);
  rmSync(to);
  rmSync(`${source}.jsonl`);
  assert.equal((await sync(source, to)).bytes.transferred, 0);
  assert.deepEqual(contentsOf(source), contentsOf(index));
});

test('the bytes of files that are copied at the same time are all counted', async () => {
  const { bytes } = await sync(index, destination(), { jobs: 4 });
  assert.equal(bytes.transferred, bytes.all);
});

test('a dry run is refused where the copy would be', async () => {
  const to = destination();
  await sync(index, to);
  const lock = FileLock.acquire(join(`${to}.copies`, 'sync.lock'), 'exclusive');
  assert.ok(lock !== undefined);
  try {
    await assert.rejects(sync(index, to, { dryRun: true }), trawlError('DOWNLOAD_LOCKED'));
  } finally {
    lock.release();
  }
});

test('a dry run says what is missing and changes nothing', async () => {
  const to = destination();
  const all = await sync(index, to, { dryRun: true });
  assert.equal(all.state, 'planned');
  assert.ok(all.bytes.transferred > 100_000);
  assert.ok(!existsSync(`${to}.copies`));
  await sync(index, to);
  const some = await sync(changed, to, { dryRun: true });
  assert.equal(some.files.copied, 1);
  assert.equal(some.previous, old);
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('a transfer that breaks off is resumed where it ended', async () => {
  const to = destination();
  const path = 'shard-00000/passages.sqlite';
  const offsets: number[] = [];
  let breaks = 1;
  const open = async (): Promise<CopySource> => {
    const source = await folderSource(index)(new AbortController().signal);
    return {
      ...source,
      async *read(file, offset, signal) {
        if (file !== path) return yield* source.read(file, offset, signal);
        offsets.push(offset);
        for await (const chunk of source.read(file, offset, signal)) {
          if (breaks-- <= 0) return yield chunk;
          return yield chunk.subarray(0, 50_000);
        }
      },
    };
  };
  await sync(open, to);
  assert.deepEqual(offsets, [0, 50_000]);
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('a file that differs from its manifest is refused, and the destination stays as it was', async () => {
  const damaged = join(folder, 'damaged');
  cpSync(changed, damaged, { recursive: true });
  const { path } = readIndexManifest(changed).tombstones!;
  const bytes = readFileSync(join(damaged, path));
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(join(damaged, path), bytes);
  const to = destination();
  await assert.rejects(
    sync(damaged, to, { jobs: 1 }),
    trawlError('INDEX_CHECKSUM_MISMATCH', /tombstones-.*sha256 is/s),
  );
  assert.ok(!existsSync(to));
  // Once the source is right, only that file is transferred.
  cpSync(join(changed, path), join(damaged, path));
  const report = await sync(damaged, to);
  assert.equal(report.files.copied, 1);
});

test('a passage file with another content is refused', async () => {
  const damaged = join(folder, 'damaged-passages');
  cpSync(index, damaged, { recursive: true });
  const file = join(damaged, 'shard-00000', 'passages.sqlite');
  const bytes = readFileSync(file);
  const at = bytes.indexOf('Eiffel');
  assert.ok(at > 0);
  bytes[at] = 0x58;
  writeFileSync(file, bytes);
  await assert.rejects(sync(damaged, destination()), trawlError('INDEX_CHECKSUM_MISMATCH', /passages\.sqlite/));
});

test('a source that is shorter than its manifest says is refused before anything is copied', async () => {
  const short = join(folder, 'short');
  cpSync(index, short, { recursive: true });
  truncateSync(join(short, 'shard-00000', 'codes.i8'), 1000);
  await assert.rejects(
    sync(short, destination()),
    trawlError('INDEX_FILE_TRUNCATED', /codes\.i8.*has 1000 bytes.*build the index again/),
  );
});

test('a source that is updated during the copy is copied as it was when the copy began', async () => {
  const moving = join(folder, 'moving');
  cpSync(index, moving, { recursive: true });
  const to = destination();
  let updated = false;
  const open = async (): Promise<CopySource> => {
    const source = await folderSource(moving)(new AbortController().signal);
    return {
      ...source,
      async *read(path, offset, signal) {
        if (!updated) {
          updated = true;
          rmSync(moving, { recursive: true });
          cpSync(changed, moving, { recursive: true });
        }
        yield* source.read(path, offset, signal);
      },
    };
  };
  assert.equal((await sync(open, to)).generation, old);
  assert.deepEqual(contentsOf(to), contentsOf(index));
  assert.equal((await sync(moving, to)).generation, next);
});

test('--check finds a file of the copy that was damaged, and makes a new copy', async () => {
  const to = destination();
  await sync(index, to);
  const file = join(to, 'shard-00000', 'codes.i8');
  const { mtime } = statSync(file);
  const bytes = readFileSync(file);
  bytes[bytes.length - 100]! ^= 1;
  writeFileSync(file, bytes);
  utimesSync(file, mtime, mtime);
  const report = await sync(index, to, { check: true });
  assert.equal(report.state, 'copied');
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('a copy that was changed in place is not taken for the source', async () => {
  const to = destination();
  await sync(index, to);
  await removePassages(to, ['s-0003'], {});
  const report = await sync(index, to);
  assert.equal(report.state, 'copied');
  assert.equal(report.bytes.transferred, 0);
  assert.deepEqual(contentsOf(to), contentsOf(index));
});

test('destinations that are something else are refused', async () => {
  const file = destination();
  writeFileSync(file, 'x');
  await assert.rejects(sync(index, file), trawlError('INDEX_EXISTS', /is a file/));
  const other = destination();
  mkdirSync(other);
  writeFileSync(join(other, 'notes.txt'), 'x');
  await assert.rejects(sync(index, other), trawlError('INDEX_EXISTS', /a folder with other files/));
  const link = destination();
  symlinkSync(index, link);
  await assert.rejects(sync(index, link), trawlError('INDEX_EXISTS', /a symbolic link to/));
  const empty = destination();
  mkdirSync(empty);
  assert.equal((await sync(index, empty)).state, 'copied');
});

test('a destination to which another run copies is refused', async () => {
  const to = destination();
  mkdirSync(`${to}.copies`);
  const lock = FileLock.acquire(join(`${to}.copies`, 'sync.lock'), 'exclusive');
  assert.ok(lock !== undefined);
  try {
    await assert.rejects(sync(index, to), trawlError('DOWNLOAD_LOCKED', /Another `trawl sync`/));
  } finally {
    lock.release();
  }
});

test('sources that are no index, of another version, or name files outside are refused', async () => {
  const wrong = join(folder, 'wrong');
  mkdirSync(wrong);
  await assert.rejects(sync(wrong, destination()), trawlError('INDEX_NOT_FOUND'));
  await assert.rejects(sync(join(wrong, 'none'), destination()), trawlError('INDEX_NOT_FOUND'));
  const manifest = JSON.parse(readFileSync(join(index, 'manifest.json'), 'utf8'));
  delete manifest.checksum;
  const write = (value: object): void => writeFileSync(join(wrong, 'manifest.json'), JSON.stringify(value));
  write({ ...manifest, version: 99 });
  await assert.rejects(sync(wrong, destination()), trawlError('INDEX_VERSION_UNSUPPORTED', /99/));
  for (const path of ['../sample/shard-00000', '/etc', 'a/../../b', 'shard-00000\\x', './x', 'a//b']) {
    write({ ...manifest, shards: [{ ...manifest.shards[0], path }] });
    await assert.rejects(sync(wrong, destination()), trawlError('INDEX_MANIFEST_INVALID', /not inside the index/));
  }
  const linked = join(folder, 'linked');
  cpSync(index, linked, { recursive: true });
  const codes = join(linked, 'shard-00000', 'codes.i8');
  rmSync(codes);
  symlinkSync(join(index, 'shard-00000', 'codes.i8'), codes);
  await assert.rejects(sync(linked, destination()), trawlError('INDEX_FILE_FOREIGN', /leads out of the index/));
});

test('a full disk ends the copy with DISK_FULL, and the next run completes it', async (t) => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const mounted = smallDisk(disk, 3072);
  if ('missing' in mounted) return t.skip(mounted.missing);
  try {
    const to = join(disk, 'copy');
    const filler = join(disk, 'filler');
    let filled = false;
    const onProgress = ({ doneBytes }: { doneBytes: number }): void => {
      if (filled || doneBytes < 200_000) return;
      filled = true;
      try {
        for (;;) appendFileSync(filler, Buffer.alloc(4096));
      } catch {
        // The disk is full.
      }
    };
    await assert.rejects(sync(index, to, { onProgress, jobs: 1 }), trawlError('DISK_FULL', /no space/i));
    assert.ok(!existsSync(to));
    writeFileSync(filler, '');
    rmSync(filler);
    const report = await sync(index, to);
    assert.ok(report.bytes.transferred < report.bytes.all, 'what was copied before is not copied again');
    assert.deepEqual(contentsOf(to), contentsOf(index));
    const big = join(disk, 'big');
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 100_000));
    await assert.rejects(sync(index, big), trawlError('DISK_FULL', /the missing files need/));
  } finally {
    mounted.unmount();
  }
});
