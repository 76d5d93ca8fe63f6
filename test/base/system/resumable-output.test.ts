import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { writeFileDurably } from '../../../src/base/system/durable-file.ts';
import { reportIfComplete } from '../../../src/base/system/output-report.ts';
import { type ResumableOptions, ResumableOutput } from '../../../src/base/system/resumable-output.ts';
import { runModule } from '../../helpers/run-module.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const HASHES = ['a'.repeat(64), 'b'.repeat(64)] as const;
const SETTINGS = { 'query file': HASHES[0], '--k': 5, '--filter': null };

interface State {
  readonly done: number;
}

function openAt(paths: readonly string[], options: Partial<ResumableOptions> = {}): Promise<ResumableOutput<State>> {
  return ResumableOutput.open(paths, {
    settings: SETTINGS,
    restart: false,
    replaces: true,
    ...options,
  });
}

/** Leaves an unfinished output with 10 bytes saved. */
async function leaveUnfinished(path: string): Promise<void> {
  const output = await openAt([path]);
  await output.append(['0123456789']);
  await output.save({ done: 1 });
  await output.close();
}

function textsOf(paths: readonly string[]): string[] {
  return paths.map((path) => readFileSync(path, 'utf8'));
}

test('a run that ends early resumes behind what it saved, and drops what came after', async (t) => {
  const folder = await tempFolder(t);
  const paths = [join(folder, 'rows.npy'), join(folder, 'scores.npy')];
  const first = await openAt(paths);
  assert.equal(first.resumed, undefined);
  await first.append([Buffer.from('saved '), 'SAVED ']);
  await first.save({ done: 2 });
  await first.append([Buffer.from('lost'), 'LOST']);
  await first.close();
  const second = await openAt(paths);
  assert.deepEqual([second.resumed, second.isComplete], [{ done: 2 }, false]);
  await second.append(['ende', Buffer.from('ÉND')]);
  await second.finish({ done: 3 }, { queries: 3 });
  await second.close();
  assert.deepEqual(textsOf(paths), ['saved ende', 'SAVED ÉND']);
  assert.deepEqual(readdirSync(folder).sort(), ['rows.npy', 'rows.npy.report.json', 'scores.npy']);
});

test('a run that saved nothing leaves nothing', async (t) => {
  const folder = await tempFolder(t);
  const output = await openAt([join(folder, 'hits.jsonl')]);
  await output.append(['much text']);
  await output.close();
  assert.deepEqual(readdirSync(folder), []);
});

test('an output stays as it was until the new one is complete, also behind a link', async (t) => {
  const folder = await tempFolder(t);
  const [file, link] = [join(folder, 'real.jsonl'), join(folder, 'link.jsonl')];
  writeFileSync(file, 'old');
  symlinkSync(file, link);
  const output = await openAt([link]);
  await output.append(['new']);
  await output.save({ done: 1 });
  assert.equal(readFileSync(link, 'utf8'), 'old');
  await output.finish({ done: 1 }, {});
  await output.close();
  assert.equal(readFileSync(file, 'utf8'), 'new');
  assert.deepEqual(readdirSync(folder).sort(), ['link.jsonl', 'real.jsonl', 'real.jsonl.report.json']);
});

test('an existing output is refused if it may not be replaced, and an unfinished one beside it as well', async (t) => {
  const path = join(await tempFolder(t), 'out.json');
  await leaveUnfinished(path);
  writeFileSync(path, 'old');
  const refusal = /out\.json already exists.*--restart/;
  await assert.rejects(openAt([path], { replaces: false }), trawlError('OUTPUT_EXISTS', refusal));
  await (await openAt([path], { replaces: false, restart: true })).close();
  assert.equal(readFileSync(path, 'utf8'), 'old');
  // The refused call holds no lock.
  await (await openAt([path])).close();
});

test('a run that was killed between its last record and its renames is only completed', async (t) => {
  const folder = await tempFolder(t);
  const paths = [join(folder, 'rows.npy'), join(folder, 'scores.npy')];
  const first = await openAt(paths);
  await first.append(['rows', 'scores']);
  await first.save({ done: 7 });
  await first.close();
  // As after the rename of the first file.
  const record = JSON.parse(readFileSync(`${paths[0]}.progress`, 'utf8')) as object;
  writeFileSync(`${paths[0]}.progress`, JSON.stringify({ ...record, finished: true }));
  writeFileSync(paths[0]!, readFileSync(`${paths[0]}.partial`));
  rmSync(`${paths[0]}.partial`);
  // Its own file is no reason to refuse.
  const second = await openAt(paths, { replaces: false });
  assert.deepEqual([second.isComplete, second.resumed], [true, { done: 7 }]);
  await second.finish(second.resumed!, { queries: 7 });
  await second.close();
  assert.deepEqual(textsOf(paths), ['rows', 'scores']);
  assert.deepEqual(readdirSync(folder).sort(), ['rows.npy', 'rows.npy.report.json', 'scores.npy']);
  assert.equal(reportIfComplete<{ queries: number }>(paths, SETTINGS)?.queries, 7);
});

test('a run whose partial file is removed or replaced while it writes fails, and an old output is not taken for its own', async (t) => {
  for (const damage of [rmSync, (path: string) => writeFileDurably(path, 'of another program')]) {
    const folder = await tempFolder(t);
    const path = join(folder, 'rows.npy');
    writeFileSync(path, 'old rows');
    const output = await openAt([path]);
    await output.append(['new ']);
    await output.save({ done: 1 });
    await damage(`${path}.partial`);
    await output.append(['rows']);
    const removed = /rows\.npy\.partial was removed or replaced .*--restart/;
    await assert.rejects(output.finish({ done: 2 }, {}), trawlError('OUTPUT_DIFFERS', removed));
    await output.close();
    assert.equal(readFileSync(path, 'utf8'), 'old rows');
    assert.equal(existsSync(`${path}.report.json`), false);
    const again = await openAt([path], { restart: true });
    await again.append(['new rows']);
    await again.finish({ done: 2 }, {});
    await again.close();
    assert.equal(readFileSync(path, 'utf8'), 'new rows');
  }
});

test('a run that only renames complete files fails if one of them is removed meanwhile', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  await leaveUnfinished(path);
  const record = JSON.parse(readFileSync(`${path}.progress`, 'utf8')) as object;
  writeFileSync(`${path}.progress`, JSON.stringify({ ...record, finished: true }));
  const output = await openAt([path]);
  assert.equal(output.isComplete, true);
  rmSync(`${path}.partial`);
  await assert.rejects(
    output.finish({ done: 1 }, {}),
    trawlError('OUTPUT_DIFFERS', /hits\.jsonl\.partial was removed/),
  );
  await output.close();
  assert.ok(existsSync(`${path}.progress`));
});

test('other settings are refused with what differs, hashes without their values', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  await leaveUnfinished(path);
  const other = { 'query file': HASHES[1], '--k': 7, '--filter': 'a = 1' };
  await assert.rejects(
    openAt([path], { settings: other }),
    trawlError(
      'OUTPUT_DIFFERS',
      /: query file changed; --k was 5 and is 7; --filter was not set and is "a = 1"\. .*--restart/,
    ),
  );
  await assert.rejects(
    openAt([path], { settings: { '--k': 5, inputs: [HASHES[0]] } }),
    trawlError('OUTPUT_DIFFERS', /: query file was "a+" and is not set; inputs was not set and is \["a+"\]\. /),
  );
  const again = await openAt([path], { settings: other, restart: true });
  assert.equal(again.resumed, undefined);
  await again.append(['new']);
  await again.finish({ done: 1 }, {});
  await again.close();
  assert.equal(readFileSync(path, 'utf8'), 'new');
});

test('a run with equal settings is resumed, unless it is to begin again', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  await leaveUnfinished(path);
  for (const [restart, resumed] of [
    [false, { done: 1 }],
    [true, undefined],
  ] as const) {
    const output = await openAt([path], { restart });
    assert.deepEqual(output.resumed, resumed);
    await output.close();
  }
});

test('a partial file that lost bytes, and a record that is not one, are refused, or dropped to begin again', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  const damages: readonly (readonly [() => void, RegExp])[] = [
    [() => truncateSync(`${path}.partial`, 9), /hits\.jsonl\.partial lacks bytes that .*--restart/],
    [() => rmSync(`${path}.partial`), /hits\.jsonl\.partial lacks bytes/],
    [() => writeFileSync(`${path}.progress`, ''), /not a record that this version/],
    [() => writeFileSync(`${path}.progress`, '{"settings"'), /not a record/],
    [() => writeFileSync(`${path}.progress`, 'null'), /not a record/],
    [() => writeFileSync(`${path}.progress`, '{"format":"trawl-output","version":999}'), /not a record/],
  ];
  for (const [damage, message] of damages) {
    await leaveUnfinished(path);
    damage();
    await assert.rejects(openAt([path]), trawlError('OUTPUT_DIFFERS', message));
    const anew = await openAt([path], { restart: true });
    assert.equal(anew.resumed, undefined);
    await anew.close();
    assert.equal(existsSync(`${path}.progress`), false);
  }
});

test('a record that cannot be read is not taken for none', async (t) => {
  const path = join(await tempFolder(t), 'out.npy');
  await leaveUnfinished(path);
  rmSync(`${path}.progress`);
  symlinkSync(`${path}.progress`, `${path}.progress`);
  await assert.rejects(openAt([path]), { code: 'ELOOP' });
});

test('a finished output whose files changed before they were renamed is refused', async (t) => {
  const path = join(await tempFolder(t), 'hits.jsonl');
  await leaveUnfinished(path);
  const record = JSON.parse(readFileSync(`${path}.progress`, 'utf8')) as object;
  writeFileSync(`${path}.progress`, JSON.stringify({ ...record, finished: true }));
  writeFileSync(`${path}.partial`, 'longer than what was recorded');
  await assert.rejects(openAt([path]), trawlError('OUTPUT_DIFFERS', /lacks bytes/));
});

function failing(t: TestContext, file: FileHandle, method: 'write' | 'datasync', code: string): { restore(): void } {
  const failure = (): Promise<never> => Promise.reject(Object.assign(new Error('no space'), { code }));
  return t.mock.method(Object.getPrototypeOf(file) as FileHandle, method, failure).mock;
}

test('on a full disk nothing that was saved is lost, and the run resumes once there is space', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'hits.jsonl');
  const handle = await open(folder);
  t.after(() => handle.close());
  await leaveUnfinished(path);
  for (const method of ['write', 'datasync'] as const) {
    const output = await openAt([path]);
    const full = failing(t, handle, method, 'ENOSPC');
    await assert.rejects(
      output.append(['more']).then(() => output.save({ done: 2 })),
      trawlError('DISK_FULL', /hits\.jsonl/),
    );
    full.restore();
    await output.close();
  }
  const output = await openAt([path]);
  assert.deepEqual(output.resumed, { done: 1 });
  await output.append([' and the rest']);
  await output.finish({ done: 2 }, {});
  await output.close();
  assert.equal(readFileSync(path, 'utf8'), '0123456789 and the rest');
});

test('a complete output is recognised by its settings and its bytes', async (t) => {
  const folder = await tempFolder(t);
  const paths = [join(folder, 'rows.npy'), join(folder, 'scores.npy')];
  const output = await openAt(paths);
  await output.append(['rows', 'scores']);
  await output.finish({ done: 2 }, { queries: 2 });
  await output.close();
  const complete = (settings: object = SETTINGS): boolean =>
    reportIfComplete(paths, settings as Record<string, unknown>) !== undefined;
  assert.equal(complete(), true);
  assert.equal(complete({ ...SETTINGS, '--k': 6 }), false);
  writeFileSync(paths[1]!, 'score');
  assert.equal(complete(), false);
  writeFileSync(paths[1]!, 'scores');
  assert.equal(complete(), true);
  rmSync(paths[0]!);
  assert.equal(complete(), false);
  writeFileSync(paths[0]!, 'rows');
  for (const damaged of ['', 'null', '{}', '{"settings":{}}']) {
    writeFileSync(`${paths[0]}.report.json`, damaged);
    assert.equal(complete(), false, damaged);
  }
  rmSync(`${paths[0]}.report.json`);
  assert.equal(complete(), false);
});

test('a second run of the same output is refused while the first one writes, also from another process', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'hits.jsonl');
  const first = await openAt([path]);
  await assert.rejects(openAt([path], { restart: true }), trawlError('OUTPUT_EXISTS', /Another run is writing/));
  const { stderr } = runModule(
    `import { ResumableOutput } from '#root/src/base/system/resumable-output.js';
     const options = { settings: {}, restart: true, replaces: true };
     await ResumableOutput.open([${JSON.stringify(path)}], options).catch((error) => console.error(error.code));`,
  );
  assert.match(stderr, /OUTPUT_EXISTS/);
  await first.close();
  await (await openAt([path])).close();
});

test('a folder, and a path in no folder, are refused before anything is written', async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'out.npy'));
  await assert.rejects(openAt([join(folder, 'out.npy')]), trawlError('OUTPUT_NOT_WRITABLE', /it is a folder/));
  await assert.rejects(
    openAt([join(folder, 'a.npy'), join(folder, 'none', 'b.npy')]),
    trawlError('OUTPUT_NOT_WRITABLE', /parent folder/),
  );
  assert.deepEqual(readdirSync(folder), ['out.npy']);
});
