import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { type Ended, endOf, fileFolder, jsonOf, runTrawl, SAMPLE_PASSAGES, spawnTrawl } from './run-trawl.ts';

const cwd = await fileFolder();

/** A corpus and questions that take several seconds: the sample's texts many times. */
before(async () => {
  const sample = readFileSync(SAMPLE_PASSAGES, 'utf8');
  writeFileSync(join(cwd, 'big.jsonl'), sample.repeat(60));
  const questions = Array.from(
    { length: 30_000 },
    (_, i) => `{"id": "q${i}", "question": "question number ${i}", "gold_ids": ["s-0001"]}\n`,
  );
  writeFileSync(join(cwd, 'questions.jsonl'), questions.join(''));
  assert.equal((await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'old', '--quiet'], { cwd })).code, 0);
});

/** Runs a command until stderr contains `after` (null: until the index is open), waits `waitMs`, and sends the signal. */
async function interrupted(
  args: readonly string[],
  after: string | null,
  signal: NodeJS.Signals,
  waitMs = 150,
): Promise<Ended> {
  const child = spawnTrawl(args, { cwd });
  const ended = endOf(child);
  if (after === null) await indexOpened(child.pid!);
  else {
    let seen = '';
    await new Promise<void>((resolve) => {
      child.stderr!.on('data', (text: string) => {
        seen += text;
        if (seen.includes(after)) resolve();
      });
    });
  }
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  child.kill(signal);
  return ended;
}

/** Waits until the process has the passage file open. Needed for commands that print nothing before their result. */
async function indexOpened(pid: number): Promise<void> {
  const files = `/proc/${pid}/fd`;
  if (!existsSync('/proc/self/fd')) return void (await new Promise((resolve) => setTimeout(resolve, 3_000)));
  const holds = (): boolean => {
    try {
      return readdirSync(files).some((file) => readlinkSync(join(files, file)).endsWith('passages.sqlite'));
    } catch {
      // A file was closed meanwhile.
      return false;
    }
  };
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

for (const [stage, signal, exit] of [
  ['reading', 'SIGINT', EXIT.interrupted],
  ['encoding', 'SIGINT', EXIT.interrupted],
  ['encoding', 'SIGTERM', EXIT.resumable],
] as const) {
  test(`trawl index stopped by ${signal} while ${stage} ends with ${exit} and leaves the old index`, async () => {
    const generation = jsonOf<{ generation: string }>(await runTrawl(['inspect', 'old', '--json'], { cwd })).generation;
    const args = ['index', 'big.jsonl', '--out', 'old', '--overwrite'];
    const {
      code,
      signal: died,
      stdout,
      stderr,
    } = await interrupted(args, stage, signal, stage === 'reading' ? 0 : 150);
    assert.deepEqual([code, died, stdout], [exit, null, '']);
    assert.match(
      stderr,
      /trawl: Stopped.* the same command (again to resume|starts from the beginning)\. \[CANCELLED\]\n$/,
    );
    assert.doesNotMatch(stderr, /terminate|core|\n {4}at /);
    assert.equal(existsSync(join(cwd, 'old.partial')), stage === 'encoding');
    const after = jsonOf<{ generation: string }>(await runTrawl(['inspect', 'old', '--json'], { cwd }));
    assert.equal(after.generation, generation);
    assert.equal((await runTrawl(['verify', 'old', '--quiet'], { cwd })).code, 0);
  });
}

test('a killed build leaves the old index usable; a different build is refused until --restart removes the rest', async () => {
  const args = ['index', 'big.jsonl', '--out', 'old', '--overwrite'];
  const { signal } = await interrupted(args, 'encoding', 'SIGKILL');
  assert.equal(signal, 'SIGKILL');
  assert.equal(existsSync(join(cwd, 'old.partial')), true);
  assert.equal((await runTrawl(['search', 'old', 'a river', '--quiet'], { cwd })).code, 0);
  const partial = await runTrawl(['search', 'old.partial', 'a river'], { cwd });
  assert.match(partial.stderr, /unfinished build.*\[INDEX_NOT_FOUND\]/);
  const other = ['index', SAMPLE_PASSAGES, '--out', 'old', '--overwrite'];
  const refused = await runTrawl(other, { cwd });
  assert.equal(refused.code, EXIT.failed);
  assert.match(refused.stderr, /corpus file 1: big\.jsonl, now passages\.jsonl.*--restart\. \[BUILD_DIFFERS\]\n$/);
  assert.equal((await runTrawl([...other, '--restart', '--quiet'], { cwd })).code, 0);
  assert.equal(existsSync(join(cwd, 'old.partial')), false);
});

test('a second Ctrl-C ends a build at once, without an abort of native code', async () => {
  const child = spawnTrawl(['index', 'big.jsonl', '--out', 'second'], { cwd });
  const ended = endOf(child);
  await new Promise<void>((resolve) => {
    child.stderr!.on('data', (text: string) => {
      if (text.includes('encoding')) resolve();
    });
  });
  child.kill('SIGINT');
  child.kill('SIGTERM');
  const { code, signal, stderr } = await ended;
  assert.deepEqual([code, signal], [EXIT.interrupted, null]);
  assert.doesNotMatch(stderr, /terminate|core dumped/);
});

test('repeated SIGTERMs, as from a scheduler, still end a build with a checkpoint and the exit code for resuming', async () => {
  const child = spawnTrawl(['index', 'big.jsonl', '--out', 'third'], { cwd });
  const ended = endOf(child);
  await new Promise<void>((resolve) => {
    child.stderr!.on('data', (text: string) => {
      if (text.includes('encoding')) resolve();
    });
  });
  for (let i = 0; i < 5; i++) {
    child.kill('SIGTERM');
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  const { code, signal, stderr } = await ended;
  assert.deepEqual([code, signal], [EXIT.resumable, null]);
  assert.match(stderr, /run the same command again to resume\. \[CANCELLED\]\n$/);
});

for (const args of [
  ['eval', 'old', '--queries', 'questions.jsonl'],
  ['search', 'old', '--queries', 'questions.jsonl', '--out', 'hits.jsonl'],
]) {
  test(`trawl ${args[0]} stopped by Ctrl-C ends with ${EXIT.interrupted} and one line`, async () => {
    const { code, signal, stdout, stderr } = await interrupted(args, null, 'SIGINT');
    assert.deepEqual([code, signal, stdout], [EXIT.interrupted, null, '']);
    // A search also reports its progress, and what it has written.
    assert.match(
      stderr,
      args[0] === 'search'
        ? /^(searching\n)?trawl: (Interrupted|Stopped after \d+ of \d+ queries\. The same command resumes there)\. \[CANCELLED\]\n$/
        : /^trawl: Interrupted\. \[CANCELLED\]\n$/,
    );
  });
}

test('with --json an interruption is reported as JSON', async () => {
  const args = ['eval', 'old', '--queries', 'questions.jsonl', '--json'];
  const { code, stderr } = await interrupted(args, null, 'SIGTERM');
  assert.equal(code, EXIT.interrupted);
  assert.deepEqual(JSON.parse(stderr), { error: { code: 'CANCELLED', message: 'Interrupted.', details: {} } });
});
