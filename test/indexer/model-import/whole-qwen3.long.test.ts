import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { processPeakBytes } from '../../../bench/process-peak.ts';
import { endOf, postJson, serveIndex, spawnTrawl } from '../../cli/run-trawl.ts';
import { qwen3Checkpoint } from '../../gpu/gpu-checkpoints.ts';
import { writeRandomCheckpoint } from '../../gpu/random-checkpoint.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const LAYERS = 28;
const MOST_BYTES = 4e9;
const NEEDED_DISK_BYTES = 6e9;
const PASSAGES = 100;
/** 128 tokens, nearly. */
const WORDS = 100;

async function withoutRoom(): Promise<string | false> {
  if (process.platform !== 'linux') return 'the peak memory of a process is read on Linux only';
  const { bavail, bsize } = await statfs(tmpdir());
  const free = bavail * bsize;
  return free >= NEEDED_DISK_BYTES ? false : `${(free / 1e9).toFixed(1)} GB of disk are free, 6 GB are needed`;
}

/** The peak memory of a process, read until it ends. */
function watchPeak(child: ChildProcess): { bytes(): number } {
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, processPeakBytes(child.pid!) ?? 0);
  }, 100);
  child.once('exit', () => clearInterval(timer));
  return { bytes: () => peak };
}

test('a model of 0.6 billion parameters is added, builds an index and serves in int8, each within 4 GB of memory', {
  skip: await withoutRoom(),
}, async (t) => {
  const folder = await tempFolder(t);
  const checkpoint = join(folder, 'qwen3');
  writeRandomCheckpoint(checkpoint, qwen3Checkpoint(false, LAYERS));
  const corpus = join(folder, 'corpus.jsonl');
  const text = (i: number): string =>
    Array.from({ length: WORDS }, (_, j) => `word${(i * 7 + j * 13) % 997}`).join(' ');
  writeFileSync(
    corpus,
    Array.from({ length: PASSAGES }, (_, i) => `${JSON.stringify({ id: i, text: text(i) })}\n`).join(''),
  );
  const run = async (...args: string[]): Promise<number> => {
    const child = spawnTrawl([...args, '--quiet'], { cwd: folder });
    const peak = watchPeak(child);
    const { code, stderr } = await endOf(child);
    assert.equal(code, 0, stderr);
    return peak.bytes();
  };
  const peaks = { 'trawl model add': await run('model', 'add', checkpoint, '--out', './model', '--precision', 'int8') };
  await rm(checkpoint, { recursive: true });
  Object.assign(peaks, {
    'trawl index': await run('index', corpus, '--out', 'ix', '--model', './model'),
  });
  const server = await serveIndex(t, join(folder, 'ix'), [], { cwd: folder });
  const peak = watchPeak(server.child);
  const questions = Array.from({ length: 16 }, (_, i) => `where is word${i}?`);
  const reply = await postJson(server.url, { queries: questions, topk: 3 });
  assert.equal(reply.status, 200);
  await new Promise((resolve) => setTimeout(resolve, 300));
  Object.assign(peaks, { 'trawl serve': peak.bytes() });
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
  for (const [command, bytes] of Object.entries(peaks)) {
    t.diagnostic(`${command}: ${(bytes / 1e9).toFixed(2)} GB at its peak`);
    assert.ok(bytes > 1e8 && bytes < MOST_BYTES, `${command}: ${bytes} bytes`);
  }
});
