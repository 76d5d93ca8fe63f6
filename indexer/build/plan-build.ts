import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { basename, resolve } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { scanCorpus } from '../../corpus/scan-corpus.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import type { BuildOptions } from './build-options.ts';
import { freeBytes } from '../disk-room.ts';
import { type CorpusSample, expectedBytes, sampleCorpus } from '../expected-size.ts';
import type { GivenVectors } from '../vectors/given-vectors.ts';
import { CODES_FILE, PASSAGES_FILE, VECTORS_FILE } from '../index-files.ts';
import { readSegments } from '../vectors/read-segments.ts';
import { cutPositions, DEFAULT_SHARD_ROWS, shardCount } from './shard-cut.ts';

/** How long the encoder is tried. */
const TRIAL_MS = 4_000;
/** Passages of one trial call; the first call is not counted. */
const TRIAL_BATCH = 32;

/** What a build would take. Bytes are of what this command would make: of one shard where it is a job. */
export interface BuildPlan {
  readonly folder: string;
  /** By the number of lines, and the share of blank ones among the first. */
  readonly rows: number;
  readonly dimension: number;
  readonly shards: number;
  readonly corpus: readonly { readonly name: string; readonly bytes: number; readonly lines: number }[];
  readonly bytes: {
    readonly vectors: number;
    readonly codes: number;
    /** At most: a screen is made where it pays, and its size follows from the rows. */
    readonly screen: number;
    readonly passages: number;
    readonly total: number;
  };
  /** File of each of `bytes` within a shard. */
  readonly files: { readonly vectors: string; readonly codes: string | null; readonly passages: string };
  /** Vectors from files: how many, and their bytes where they lie. Null where passages are embedded. */
  readonly vectors: { readonly rows: number; readonly bytes: number; readonly use: 'adopt' | 'copy' } | null;
  readonly freeBytes: number;
  /** Resident memory of this process with the model loaded and at work: a build stays near it, however long it is. */
  readonly buildMemoryBytes: number;
  /** What wants to stay in memory while the index is searched. */
  readonly searchMemoryBytes: number;
  readonly machineMemoryBytes: number;
  readonly passagesPerS: number;
  readonly tokensPerPassage: number;
  /** Of the scan that was made, of reading and of encoding by a sample. */
  readonly seconds: { readonly scan: number; readonly read: number; readonly encode: number };
  /** What does not fit, as sentences. */
  readonly problems: readonly string[];
}

/** Looks at the corpus, tries the encoder for a few seconds, and writes nothing. */
export async function planBuild(
  options: BuildOptions,
  shard: { readonly index: number; readonly of: number } | undefined,
): Promise<BuildPlan> {
  const { encoder, kernel, signal, onProgress } = options;
  const files = listCorpusFiles(options.corpus, options.corpusOptions.format);
  if (files.some(({ path }) => !statSync(path).isFile())) {
    throw new TrawlError(
      'USAGE',
      'A corpus that comes through a pipe cannot be looked at beforehand. Write it to a file.',
    );
  }
  const begun = performance.now();
  const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  onProgress({ stage: 'scan', passages: 0, readShare: 0 });
  const scan = await scanCorpus(files, {
    signal,
    onBytes: (bytes) => onProgress({ stage: 'scan', passages: 0, readShare: Math.min(1, bytes / total) }),
  });
  const scanMs = performance.now() - begun;
  const shards = shard?.of ?? shardCount(scan.positions, options.shardRows ?? DEFAULT_SHARD_ROWS);
  const range =
    shard === undefined ? { first: 0, end: scan.positions } : cutPositions(scan.positions, shards)[shard.index]!;
  const sample = await sampleCorpus(options.corpus, options.corpusOptions, { scan, ...range });
  const rows = Math.round((range.end - range.first) * sample.passagesPerPosition);
  const { dimension } = encoder;
  const expected = expectedBytes(rows, { dimension, codes: kernel !== undefined, sample });
  const given = options.vectors;
  const bytes = given?.use === 'adopt' ? { ...expected, vectors: 0 } : expected;
  const bytesTotal = bytes.vectors + bytes.codes + bytes.screen + bytes.passages;
  const speed = given === undefined ? await trial(encoder, sample, options) : await vectorsTrial(given, signal);
  const plan = {
    folder: resolve(options.out),
    rows,
    dimension,
    shards,
    corpus: scan.files.map(({ path, sizeBytes, positions }) => ({
      name: basename(path),
      bytes: sizeBytes,
      lines: positions,
    })),
    bytes: { ...bytes, total: bytesTotal },
    files: { vectors: VECTORS_FILE, codes: kernel === undefined ? null : CODES_FILE, passages: PASSAGES_FILE },
    vectors:
      given === undefined
        ? null
        : { rows: given.set.rows, bytes: sum(given.set.segments.map((segment) => segment.bytes)), use: given.use },
    freeBytes: await freeBytes(resolve(options.out)),
    buildMemoryBytes: process.memoryUsage().rss,
    searchMemoryBytes: bytes.codes,
    machineMemoryBytes: totalmem(),
    ...speed,
    seconds: {
      scan: scanMs / 1000,
      read: (sample.ms / 1000 / Math.max(1, sample.documents.length)) * rows,
      encode: rows === 0 ? 0 : rows / speed.passagesPerS,
    },
  };
  return { ...plan, problems: problemsOf(plan) };
}

/** How fast the files of vectors are read and hashed, by their first blocks: codes are made meanwhile. */
async function vectorsTrial(
  { set }: GivenVectors,
  signal: AbortSignal | undefined,
): Promise<{ passagesPerS: number; tokensPerPassage: number }> {
  const begun = performance.now();
  let rows = 0;
  for await (const { count, pieces } of readSegments(set.segments, set.dimension, { signal })) {
    for (const { bytes } of pieces) createHash('sha256').update(bytes);
    rows += count;
    if (performance.now() - begun > TRIAL_MS / 4) break;
  }
  return { passagesPerS: rows / ((performance.now() - begun) / 1000), tokensPerPassage: 0 };
}

export function problemsOf(plan: Omit<BuildPlan, 'problems'>): string[] {
  const { bytes, freeBytes: free, searchMemoryBytes, machineMemoryBytes, rows } = plan;
  const lines = plan.corpus.reduce((sum, file) => sum + file.lines, 0);
  const gigabytes = (count: number): string => `${(count / 1e9).toFixed(count < 1e8 ? 4 : 2)} GB`;
  return [
    rows > 0 ? '' : 'The corpus holds no passage.',
    // Blank lines are known by a sample alone; more vectors than lines there cannot be.
    plan.vectors === null || plan.vectors.rows <= lines
      ? ''
      : `There are ${plan.vectors.rows} vectors, and the corpus has ${lines} lines.`,
    bytes.total <= free ? '' : `The index takes ${gigabytes(bytes.total)} of disk, and ${gigabytes(free)} are free.`,
    searchMemoryBytes <= machineMemoryBytes
      ? ''
      : `Searching wants ${gigabytes(searchMemoryBytes)} of codes in memory, and this machine has ${gigabytes(machineMemoryBytes)}.`,
  ].filter((problem) => problem !== '');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Tries the encoder on a sample. */
export async function trial(
  encoder: TextEncoder,
  sample: CorpusSample,
  { passageTemplate, signal }: BuildOptions,
): Promise<{ passagesPerS: number; tokensPerPassage: number }> {
  const template = parseTemplate(passageTemplate);
  const texts = sample.documents.map(({ row }, i) => template(row, { file: 'sample', line: i + 1 }));
  if (texts.length === 0) return { passagesPerS: 0, tokensPerPassage: 0 };
  let [count, tokens, ms] = [0, 0, 0];
  for (let first = 0; ms < TRIAL_MS && (first === 0 || first + TRIAL_BATCH <= texts.length); first += TRIAL_BATCH) {
    const begun = performance.now();
    const { outcomes } = await encoder.encode(texts.slice(first, first + TRIAL_BATCH), {
      kind: 'passage',
      ...(signal === undefined ? {} : { signal }),
    });
    // The first call finds caches cold, unless there is no other.
    if (first === 0 && texts.length >= 2 * TRIAL_BATCH) continue;
    ms += performance.now() - begun;
    count += outcomes.length;
    for (const outcome of outcomes) if (outcome.ok) tokens += outcome.tokens;
  }
  return { passagesPerS: count / (ms / 1000), tokensPerPassage: tokens / count };
}
