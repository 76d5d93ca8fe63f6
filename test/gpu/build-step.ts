import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { CHECKPOINT_FILE } from '../../src/index/manifest/build-records.ts';
import { agreement, agreementResult, type GpuRun, type GpuStep } from './gpu-step.ts';
import { samplePassages } from './gpu-texts.ts';

const PROGRAM = join(packageRoot, 'dist', 'cli', 'trawl.js');
/** Bytes before the rows of a flat index of FAISS. */
const HEADER = 45;
const TRIES = 6;

/** A build is killed, resumed, compared with an undisturbed one, and verified. */
export const buildStep: GpuStep = {
  name: 'a killed build is resumed',
  async run(run) {
    const corpus = join(run.folder, 'corpus.jsonl');
    const passages = samplePassages();
    const rows = run.small ? 6_000 : 40_000;
    const line = (_: unknown, i: number): string =>
      JSON.stringify({ id: `${i}`, contents: `${i} ${passages[i % passages.length]!.slice(0, run.small ? 60 : 400)}` });
    writeFileSync(corpus, `${Array.from({ length: rows }, line).join('\n')}\n`);
    const { folder: model } = run.models[0]!;
    const where = ['--model', model, '--precision', 'float16', '--device', deviceName(run)];
    const build = (out: string): string[] => [
      'index',
      corpus,
      '--out',
      out,
      ...where,
      '--checkpoint-seconds',
      '0',
      '--json',
    ];
    const whole = join(run.folder, 'whole');
    const undisturbed = await trawl(build(whole));
    if (undisturbed.code !== 0) return { outcome: 'failed', text: undisturbed.stderr };
    const made = join(run.folder, 'made');
    for (let attempt = 0; attempt < TRIES; attempt++) {
      for (const folder of [made, `${made}.partial`]) rmSync(folder, { recursive: true, force: true });
      // A build that ended before the kill is tried again.
      const { code } = await trawl(build(made), join(`${made}.partial`, 'shard-00000', CHECKPOINT_FILE));
      if (code !== null || existsSync(made)) continue;
      const resumed = await trawl(build(made));
      if (resumed.code !== 0) return { outcome: 'failed', text: resumed.stderr };
      const { resumedRows } = JSON.parse(resumed.stdout) as { resumedRows: number };
      if (resumedRows === 0) continue;
      const [own, other] = [rowsOf(made), rowsOf(whole)];
      const verified = await trawl(['verify', made, '--model', model, '--device', deviceName(run), '--sample', '200']);
      if (verified.code !== 0) return { outcome: 'failed', text: verified.stdout + verified.stderr };
      const result = agreementResult({ [`${rows} rows, ${resumedRows} of them resumed`]: agreement(own, other, rows) });
      return { ...result, text: `${result.text}\n${verified.stdout.trim()}` };
    }
    return {
      outcome: 'skipped',
      text: `No build of ${rows} rows was killed between two checkpoints in ${TRIES} tries.`,
    };
  },
};

function deviceName({ device }: GpuRun): string {
  return device === null ? 'cpu' : `cuda:${device}`;
}

function rowsOf(index: string): Float32Array {
  const bytes = readFileSync(join(index, 'shard-00000', 'vectors.faiss')).subarray(HEADER);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

interface Ended {
  /** Null: killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command; kills it when a file exists. */
function trawl(args: readonly string[], killAt?: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    // A signal to this process alone does not reach the command.
    const kill = (): unknown => child.kill('SIGKILL');
    process.once('exit', kill);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (part: Buffer) => (stdout += part));
    child.stderr.on('data', (part: Buffer) => (stderr += part));
    const timer = killAt === undefined ? undefined : setInterval(() => existsSync(killAt) && child.kill('SIGKILL'), 2);
    child.on('error', reject);
    child.on('close', (code) => {
      clearInterval(timer);
      process.off('exit', kill);
      resolve({ code, stdout, stderr });
    });
  });
}
