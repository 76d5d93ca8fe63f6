import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { loadNow, machineFacts } from '../environment.ts';
import type { BenchBm25Result } from '../lexical/bench-bm25.ts';
import { processPeakBytes } from '../process-peak.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { Measurement } from './measurement.ts';

/** As many as wiki-18 has. */
const ROWS = 21_015_324;
const SAMPLE_MS = 1_000;

/** Builds an index of words of generated passages, and measures its searches. */
export async function measureBm25Size(run: Measurement): Promise<unknown> {
  const { scratch, signal } = run;
  const corpus = join(scratch, 'wiki-like.jsonl');
  await run.trawl('bench', 'make-corpus', corpus, '--rows', String(ROWS));
  const corpusBytes = (await stat(corpus)).size;
  const index = join(scratch, 'words');
  const before = loadNow();
  const build = await buildWords(corpus, index, signal);
  const after = loadNow();
  await rm(corpus);
  const loadBefore = loadNow();
  const { records } = await run.bench<BenchBm25Result>([
    ...['bm25', '--index', index, '--threads', '2', '--runs', '2', '--seconds', '3'],
  ]);
  return {
    environment: machineFacts({ engines: [], loadBefore }),
    rows: ROWS,
    corpusBytes,
    build: { ...build, load: { before, after }, passageBytes: await passageBytes(index) },
    records,
  };
}

/** Builds the index in a process of its own, whose peak memory is sampled each second. */
async function buildWords(
  corpus: string,
  out: string,
  signal: AbortSignal,
): Promise<{ seconds: number; stageMs: Record<string, number>; peakBytes: number; shards: number }> {
  const start = performance.now();
  const child = spawn(process.execPath, [TRAWL, 'index', corpus, '--bm25', '--out', out, '--json'], {
    signal,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let peakBytes = 0;
  const sampling = setInterval(() => {
    peakBytes = Math.max(peakBytes, processPeakBytes(child.pid!) ?? 0);
  }, SAMPLE_MS);
  try {
    const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code !== 0) throw new Error(`trawl index ended with ${code}.`);
    const seconds = (performance.now() - start) / 1000;
    const { stageMs, shards } = JSON.parse(stdout) as { stageMs: Record<string, number>; shards: number };
    return { seconds, stageMs, peakBytes, shards };
  } finally {
    clearInterval(sampling);
  }
}

async function passageBytes(index: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(index, { recursive: true })) {
    if (name.endsWith('.sqlite')) bytes += (await stat(join(index, name))).size;
  }
  return bytes;
}
