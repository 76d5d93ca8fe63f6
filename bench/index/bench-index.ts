import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE, parseTemplate } from '../../corpus/passage-template.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { BATCH_PASSAGES } from '../../indexer/building/encode-passages.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { Random } from '../../src/base/random.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import type { EncodeResult, TextEncoder } from '../../src/encoder/text-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openIndexDirectory, within } from '../../src/search/opening/index-directory.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { NoOpEncoder } from '../no-op-encoder.ts';
import { buildBaseline, type IndexBaseline } from './index-baseline.ts';
import type { IndexRecord } from './index-record.ts';

export interface BenchIndexOptions {
  /** Corpus files. Without any, `rows` passages of 100 words are generated. */
  readonly corpus: readonly string[];
  readonly rows: number;
  /** Dimension of the vectors without a model. */
  readonly dimension: number;
  /** The encoder. Undefined: an encoder that takes almost no time, to measure the rest of the build. */
  readonly model: string | undefined;
  readonly threads: number;
  readonly seed: number;
  readonly scratch: string;
  /** Also builds the corpus as FlashRAG does. Needs a model and a corpus. */
  readonly baseline?: IndexBaseline;
  readonly signal: AbortSignal;
  note(text: string): void;
}

const WORDS = 100;

export async function benchIndex(
  options: BenchIndexOptions,
): Promise<{ environment: Environment; records: readonly IndexRecord[] }> {
  const { model, threads, dimension, scratch, signal, note } = options;
  const loadBefore = loadNow();
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  const corpus = options.corpus.length > 0 ? [...options.corpus] : [await syntheticCorpus(options)];
  const encoder: TextEncoder =
    model === undefined ? new NoOpEncoder(dimension) : await openEncoder(model, { workers: threads });
  const out = join(scratch, 'index');
  try {
    // This also reads the corpus into the page cache, for both builds.
    const encodeSeconds = await encodeAlone(corpus, encoder, signal);
    if (model !== undefined) note(`encoding alone took ${encodeSeconds.toFixed(1)} s`);
    const begun = performance.now();
    const { manifest, stageMs } = await buildIndex({
      corpus,
      corpusOptions: {},
      encoder,
      kernel,
      out,
      overwrite: false,
      passageTemplate: DEFAULT_PASSAGE_TEMPLATE,
      uniqueIds: false,
      onProgress: () => undefined,
      signal,
    });
    const seconds = (performance.now() - begun) / 1000;
    const indexBytes = await bytesOf(out);
    await rm(out, { recursive: true });
    const record: IndexRecord = {
      case: 'index',
      engine: 'trawl',
      encoder: model === undefined ? 'none' : encoder.identity.name,
      rows: manifest.rows,
      dimension: manifest.dimension,
      corpusBytes: manifest.corpus.files.reduce((sum, { bytes }) => sum + bytes, 0),
      indexBytes,
      codes: kernel !== undefined,
      seconds,
      passagesPerS: manifest.rows / seconds,
      stageMs,
      diskSeconds: await writeAlone(join(scratch, 'disk'), indexBytes, signal),
      encodeSeconds: model === undefined ? null : encodeSeconds,
      ratioToEncoding: model === undefined ? null : seconds / encodeSeconds,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      ratioToBaseline: null,
    };
    const baseline =
      options.baseline === undefined
        ? undefined
        : await buildBaseline(options.baseline, corpus, encoder.identity, options);
    return {
      environment: environment({ kernel, engines: [], loadBefore, bandwidthGbPerS: null }),
      records:
        baseline === undefined
          ? [record]
          : [
              { ...record, ratioToBaseline: baseline.seconds / seconds },
              { ...baseline, corpusBytes: record.corpusBytes },
            ],
    };
  } finally {
    await encoder.close();
  }
}

async function syntheticCorpus({ rows, seed, scratch, signal }: BenchIndexOptions): Promise<string> {
  const path = join(scratch, 'corpus.jsonl');
  const random = new Random(seed, rows, WORDS);
  const words = Array.from({ length: 5_000 }, (_, i) => `w${i.toString(36).padStart(4, 'o')}`);
  const file = await open(path, 'w');
  try {
    for (let first = 0; first < rows; first += 1_000) {
      throwIfCancelled(signal);
      const lines = Array.from({ length: Math.min(1_000, rows - first) }, (_, i) => {
        const text = Array.from({ length: WORDS }, () => words[random.below(words.length)]).join(' ');
        return `${JSON.stringify({ id: String(first + i), contents: `"Title ${first + i}"\n${text}` })}\n`;
      });
      await file.writeFile(lines.join(''));
    }
  } finally {
    await file.close();
  }
  return path;
}

/** Seconds that the encoder takes for all texts, in the batches of a build. */
async function encodeAlone(corpus: readonly string[], encoder: TextEncoder, signal: AbortSignal): Promise<number> {
  const template = parseTemplate(DEFAULT_PASSAGE_TEMPLATE);
  const texts: string[] = [];
  for await (const { row, location } of openCorpus(corpus, { signal, checksums: false })) {
    if (encoder instanceof NoOpEncoder) continue;
    texts.push(template(row, location));
  }
  const begun = performance.now();
  const inFlight: Promise<EncodeResult>[] = [];
  for (let first = 0; first < texts.length; first += BATCH_PASSAGES) {
    inFlight.push(encoder.encode(texts.slice(first, first + BATCH_PASSAGES), { inputType: 'passage', signal }));
    if (inFlight.length === 4) await inFlight.shift();
  }
  await Promise.all(inFlight);
  return (performance.now() - begun) / 1000;
}

async function bytesOf(index: string): Promise<number> {
  const directory = openIndexDirectory(index);
  const paths = directory.shards.flatMap(({ folder, manifest }) => [
    ...manifest.files.map(({ path }) => within(folder, path)),
    within(folder, manifest.passages.path),
  ]);
  let bytes = 0;
  for (const path of paths) bytes += (await stat(path)).size;
  return bytes;
}

/** Seconds to write `bytes` bytes into one file and sync it. */
async function writeAlone(path: string, bytes: number, signal: AbortSignal): Promise<number> {
  const block = new Uint8Array(4 * 1024 * 1024).fill(0x5a);
  const file = await open(path, 'w');
  const begun = performance.now();
  try {
    for (let done = 0; done < bytes; done += block.length) {
      throwIfCancelled(signal);
      await file.writeFile(block.subarray(0, Math.min(block.length, bytes - done)));
    }
    await file.sync();
    return (performance.now() - begun) / 1000;
  } finally {
    await file.close();
    await rm(path);
  }
}
