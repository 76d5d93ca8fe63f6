import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LogLines } from '../../src/server/log-lines.ts';
import { smallDisk } from '../helpers/small-disk.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** Both ends of a named pipe, non-blocking. */
async function namedPipe(t: TestContext): Promise<{ reader: number; writer: number }> {
  const path = join(await tempFolder(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  return { reader, writer };
}

test('lines are written whole and in order, and flush writes the last one', async (t) => {
  const path = join(await tempFolder(t), 'log');
  const file = openSync(path, 'w');
  const lines = new LogLines(file, 1e9);
  const expected = Array.from({ length: 20_000 }, (_, i) => `line ${i} ü`);
  for (const line of expected) lines.write(`${line}\n`);
  while (readFileSync(path, 'utf8').split('\n').length <= expected.length) await sleep(5);
  lines.write('last\n');
  lines.flush();
  while (!readFileSync(path, 'utf8').endsWith('last\n')) await sleep(5);
  assert.deepEqual(readFileSync(path, 'utf8').split('\n'), [...expected, 'last', '']);
  assert.equal(lines.dropped, 0);
  closeSync(file);
});

test('on a full disk lines are dropped and counted', {
  skip: !existsSync('/dev/full') && '/dev/full does not exist',
}, async () => {
  const file = openSync('/dev/full', 'w');
  const lines = new LogLines(file, 1_000);
  for (let i = 0; i < 100; i++) {
    lines.write('x\n');
    if (i % 10 === 0) await sleep(2);
  }
  while (lines.dropped < 100) await sleep(5);
  lines.write('x\n');
  lines.flush();
  while (lines.dropped < 101) await sleep(5);
  assert.equal(lines.dropped, 101);
  closeSync(file);
});

test('when the disk fills up, a truncated line is ended, lost lines are counted, and writing resumes with new space', async (t) => {
  const disk = join(await tempFolder(t), 'disk');
  mkdirSync(disk);
  const mounted = smallDisk(disk, 64);
  if ('missing' in mounted) return t.skip(mounted.missing);
  const [ballast, path] = [join(disk, 'ballast'), join(disk, 'log')];
  writeFileSync(ballast, Buffer.alloc(32 * 1024));
  const file = openSync(path, 'a');
  try {
    const lines = new LogLines(file, 1e9);
    // 100 bytes with the line end: pages are not a multiple of this length, so a line is truncated.
    const all = Array.from({ length: 1_000 }, (_, i) => `${i}`.padEnd(99, '.'));
    for (const line of all) {
      lines.write(`${line}\n`);
      await sleep(0);
    }
    while (lines.dropped === 0) await sleep(5);
    await sleep(50);
    rmSync(ballast);
    lines.write('after\n');
    while (!readFileSync(path, 'utf8').endsWith('after\n')) await sleep(5);
    const written = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    const whole = written.filter((line) => line.length === 99);
    assert.deepEqual(whole, all.slice(0, whole.length));
    assert.equal(whole.length + lines.dropped, all.length);
    assert.ok(whole.length > 300, `${whole.length} lines`);
    const rest = written.slice(whole.length);
    assert.equal(rest.at(-1), 'after');
    assert.ok(rest.length === 1 || (rest.length === 2 && all[whole.length]!.startsWith(rest[0]!)), rest.join());
  } finally {
    closeSync(file);
    mounted.unmount();
  }
});

test('for a pipe that nobody reads a bounded number of lines is kept, and they are written when it is read again', {
  skip: process.platform === 'win32' && 'Windows has no named pipes like these',
}, async (t) => {
  const { reader, writer } = await namedPipe(t);
  const lines = new LogLines(writer, 100_000);
  const line = `${'x'.repeat(99)}\n`;
  for (let i = 0; i < 10_000; i++) {
    lines.write(line);
    if (i % 500 === 0) await sleep(1);
  }
  // Not dropped: the lines in the pipe, those that wait, and one chunk.
  assert.ok(lines.dropped > 5_000 && lines.dropped < 10_000, `${lines.dropped}`);
  const buffer = Buffer.alloc(65_536);
  let text = '';
  for (let quiet = 0; quiet < 20; ) {
    let bytes = 0;
    try {
      bytes = readSync(reader, buffer);
    } catch {
      // The pipe is empty.
    }
    text += buffer.toString('latin1', 0, bytes);
    quiet = bytes === 0 ? quiet + 1 : 0;
    if (bytes === 0) await sleep(15);
  }
  assert.equal(text.length, (10_000 - lines.dropped) * line.length);
  assert.equal(text, line.repeat(10_000 - lines.dropped));
  closeSync(reader);
  closeSync(writer);
});

test('flush writes the rest of a chunk that did not fit into the pipe before the later lines', {
  skip: process.platform === 'win32' && 'Windows has no named pipes like these',
}, async (t) => {
  const expected = Array.from({ length: 1_000 }, (_, i) => `${`${i}`.padEnd(99, '.')}\n`).join('');
  const buffer = Buffer.alloc(1_000_000);
  // A write that runs at the moment of the flush is left to itself, so a try can miss; it loses nothing either.
  for (let attempt = 0; ; attempt++) {
    const { reader, writer } = await namedPipe(t);
    const lines = new LogLines(writer, 1e9);
    let text = '';
    const readAll = () => {
      try {
        for (;;) text += buffer.toString('latin1', 0, readSync(reader, buffer));
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN', 'the pipe is empty');
      }
    };
    for (let at = 0; at < expected.length; at += 100) lines.write(expected.slice(at, at + 100));
    // The first line is written alone. The other lines are a chunk of which a part fills the pipe; the rest of it then waits.
    while (text.length < 1_000) {
      await sleep(80);
      readAll();
    }
    assert.ok(text.length < expected.length, 'the pipe is smaller than the lines');
    lines.flush();
    readAll();
    const isFlushed = text.length === expected.length;
    for (let wait = 0; text.length < expected.length && wait < 100; wait++) {
      await sleep(50);
      readAll();
    }
    assert.equal(text, expected);
    assert.equal(lines.dropped, 0);
    closeSync(reader);
    closeSync(writer);
    if (isFlushed) return;
    assert.ok(attempt < 10, 'no flush wrote the rest at once');
  }
});
