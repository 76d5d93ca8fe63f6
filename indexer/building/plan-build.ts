import { createHash } from 'node:crypto';
import { basename, resolve } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { formatBytes } from '../../src/base/format.ts';
import { freeBytes } from '../../src/base/system/free-bytes.ts';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { tokensOf } from '../../src/encoder/text-encoder.ts';
import { CODES_FILE, PASSAGES_FILE, VECTORS_FILE } from '../index-files.ts';
import { noTitlesInSample } from '../lexical/check-titles.ts';
import type { PrecomputedVectors } from '../vectors/precomputed-vectors.ts';
import { readSegments } from '../vectors/read-segments.ts';
import { type Build, type BuildOptions, resolveBuild, scanFiles } from './build.ts';
import type { JobShard } from './build-shard-job.ts';
import { cutPositions, shardCount } from './build-shards.ts';
import {
  type CorpusSample,
  type ExpectedBytes,
  expectedBytes,
  expectedResident,
  sampleCorpus,
} from './expected-size.ts';

const TRIAL_MS = 4_000;
const TRIAL_BATCH = 32;

/** Expected size, time and memory of a build. For a job, `rows` and `bytes` count only its shard. */
export interface BuildPlan {
  readonly folder: string;
  /** Estimated from the number of lines, and from the share of blank lines among the first lines. */
  readonly rows: number;
  readonly dimension: number;
  readonly shards: number;
  readonly corpus: readonly { readonly name: string; readonly bytes: number; readonly lines: number }[];
  readonly bytes: ExpectedBytes;
  readonly files: { readonly vectors: string; readonly codes: string | null; readonly passages: string };
  /** Precomputed vectors: their number and size in their files. Null if passages are embedded. */
  readonly vectors: { readonly rows: number; readonly bytes: number; readonly use: 'adopt' | 'copy' } | null;
  readonly freeBytes: number;
  /** Resident memory of this process after the trial. A build needs about as much, regardless of the corpus size. */
  readonly buildMemoryBytes: number;
  /** Memory for fast searches of the whole index, if each shard that can have a prefilter gets one. */
  readonly searchMemoryBytes: number;
  /** Memory for fast searches if no shard gets a prefilter. */
  readonly searchMemoryBytesWithoutPrefilter: number;
  /** Memory of the machine, or the limit of the container. */
  readonly memoryLimitBytes: number;
  readonly passagesPerS: number;
  readonly tokensPerPassage: number;
  /** Measured for the scan, estimated from a sample for reading and encoding. */
  readonly seconds: { readonly scan: number; readonly read: number; readonly encode: number };
  /** Sentences about what does not fit. */
  readonly problems: readonly string[];
}

/**
 * Plans a build: scans the corpus and runs the encoder for a few seconds. Writes nothing.
 *
 * @param shard set for a job that builds one shard.
 */
export async function planBuild(
  options: BuildOptions,
  shard: JobShard | undefined,
  memoryLimitBytes: number = memoryLimit(),
): Promise<BuildPlan> {
  const build = resolveBuild(options);
  const scan = await scanFiles(build);
  if (scan === undefined) {
    throw new TrawlError('USAGE', 'A build from a pipe cannot be planned. Write the corpus to a file.');
  }
  const { positions } = scan;
  const shards = shard?.of ?? shardCount(positions, build.shardRows);
  const range = shard === undefined ? { first: 0, end: positions } : cutPositions(positions, shards)[shard.index]!;
  const sample = await sampleCorpus(build, { scan, ...range });
  const rows = Math.round((range.end - range.first) * sample.passagesPerPosition);
  const plan = await assemblePlan(build, {
    rows,
    passages: rows,
    shards,
    scan,
    sample,
    resident: expectedResident(Math.round(positions * sample.passagesPerPosition), shards, build),
    memoryLimitBytes,
    secondsBefore: { scan: build.clock.stop().scan / 1000, read: 0 },
  });
  const documents = sample.documents.map(({ document }) => document);
  const titles = noTitlesInSample(build.bm25, documents);
  return titles === undefined ? plan : { ...plan, problems: [...plan.problems, titles] };
}

interface PlanFacts {
  /** Rows and shards that are made. */
  readonly rows: number;
  readonly shards: number;
  /** Passages of the corpus, or of the part that a job reads. */
  readonly passages: number;
  readonly scan: CorpusScan;
  readonly sample: CorpusSample;
  readonly resident: ReturnType<typeof expectedResident>;
  readonly memoryLimitBytes: number;
  readonly secondsBefore: { readonly scan: number; readonly read: number };
}

/** The plan of a build or an update. Runs the encoder, or reads the vector files, for a few seconds. */
export async function assemblePlan(build: Build, facts: PlanFacts): Promise<BuildPlan> {
  const { rows, shards, scan, sample, resident, memoryLimitBytes, secondsBefore } = facts;
  const { out, space, kernel, vectors, signal } = build;
  const folder = resolve(out);
  const speed = vectors === undefined ? await tryEncoder(sample, build) : await tryReading(vectors, signal);
  const plan = {
    rows,
    shards,
    memoryLimitBytes,
    folder,
    dimension: space?.dimension ?? 0,
    corpus: scan.files.map(({ path, sizeBytes, positions }) => ({
      name: basename(path),
      bytes: sizeBytes,
      lines: positions,
    })),
    bytes: expectedBytes(rows, build, sample),
    files: { vectors: VECTORS_FILE, codes: kernel === undefined ? null : CODES_FILE, passages: PASSAGES_FILE },
    vectors:
      vectors === undefined
        ? null
        : {
            rows: vectors.set.rows,
            bytes: vectors.set.segments.reduce((sum, { bytes }) => sum + bytes, 0),
            use: vectors.use,
          },
    freeBytes: await freeBytes(folder),
    buildMemoryBytes: process.memoryUsage().rss,
    searchMemoryBytes: resident.withPrefilters,
    searchMemoryBytesWithoutPrefilter: resident.withoutPrefilters,
    ...speed,
    seconds: {
      scan: secondsBefore.scan,
      read: secondsBefore.read + (sample.ms / 1000 / Math.max(1, sample.documents.length)) * rows,
      encode: rows === 0 || speed.passagesPerS === 0 ? 0 : rows / speed.passagesPerS,
    },
  };
  return { ...plan, problems: planProblems(plan, facts.passages) };
}

function planProblems(plan: Omit<BuildPlan, 'problems'>, passages: number): string[] {
  const { bytes, freeBytes: free, searchMemoryBytes, memoryLimitBytes, vectors } = plan;
  const lines = plan.corpus.reduce((sum, file) => sum + file.lines, 0);
  const problems: string[] = [];
  if (passages === 0) problems.push('The corpus has no passages.');
  // The number of passages is only an estimate, but there cannot be more vectors than lines.
  if (vectors !== null && vectors.rows > lines) {
    problems.push(`There are ${vectors.rows} vectors, but the corpus has only ${lines} lines.`);
  }
  if (bytes.total > free) {
    problems.push(`The index needs ${formatBytes(bytes.total)} of disk space, but only ${formatBytes(free)} are free.`);
  }
  if (searchMemoryBytes > memoryLimitBytes) {
    problems.push(
      `Fast searches need ${formatBytes(searchMemoryBytes)} of memory, but this process may only use ` +
        `${formatBytes(memoryLimitBytes)}: each search would read the rest from the disk.`,
    );
  }
  return problems;
}

interface Speed {
  readonly passagesPerS: number;
  readonly tokensPerPassage: number;
}

/** Embeds passages of the sample for a few seconds. Ignores the first call, unless it is the only one. */
async function tryEncoder(sample: CorpusSample, { encoder, template, signal }: Build): Promise<Speed> {
  const texts = sample.documents.map(({ row }, i) => template(row, { file: 'sample', line: i + 1 }));
  if (encoder === undefined || texts.length === 0) return { passagesPerS: 0, tokensPerPassage: 0 };
  let [count, tokens, ms] = [0, 0, 0];
  for (let first = 0; ms < TRIAL_MS && (first === 0 || first + TRIAL_BATCH <= texts.length); first += TRIAL_BATCH) {
    const begun = performance.now();
    const encoded = await encoder.encode(texts.slice(first, first + TRIAL_BATCH), { inputType: 'passage', signal });
    if (first === 0 && texts.length >= 2 * TRIAL_BATCH) continue;
    ms += performance.now() - begun;
    count += encoded.outcomes.length;
    tokens += tokensOf(encoded);
  }
  return { passagesPerS: count / (ms / 1000), tokensPerPassage: tokens / count };
}

/** Reads and hashes vectors for a second. In a build, the engine makes the codes meanwhile, without additional time. */
async function tryReading({ set }: PrecomputedVectors, signal: AbortSignal | undefined): Promise<Speed> {
  const begun = performance.now();
  let rows = 0;
  for await (const { count, parts } of readSegments(set.segments, set.dimension, { files: 'build', signal })) {
    for (const { bytes } of parts) createHash('sha256').update(bytes);
    rows += count;
    if (performance.now() - begun > TRIAL_MS / 4) break;
  }
  return { passagesPerS: rows / ((performance.now() - begun) / 1000), tokensPerPassage: 0 };
}
