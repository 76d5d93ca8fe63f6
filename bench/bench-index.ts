import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openCorpus } from '../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE, parseTemplate } from '../corpus/passage-template.ts';
import { buildIndex } from '../indexer/build-index.ts';
import { BATCH_PASSAGES } from '../indexer/encode-passages.ts';
import type { StageTimes } from '../indexer/stage-clock.ts';
import { throwIfCancelled } from '../src/abort.ts';
import { openEncoder } from '../src/embedding/open-encoder.ts';
import type { EncodeResult, TextEncoder } from '../src/embedding/text-encoder.ts';
import { openIndexDirectory, within } from '../src/retrieval/index-directory.ts';
import { loadKernel } from '../src/vector-index/kernel.ts';
import { type Environment, environment, loadNow } from './environment.ts';
import { IdleEncoder } from './idle-encoder.ts';
import { Random } from './random.ts';

export interface BenchIndexOptions {
  /** Corpus files; without any, `rows` passages of 100 words are made. */
  readonly corpus: readonly string[];
  readonly rows: number;
  /** Of the vectors that cost nothing. */
  readonly dimension: number;
  /** Embeds; without one vectors cost nothing, and what is measured is all the rest. */
  readonly model: string | undefined;
  readonly threads: number;
  readonly seed: number;
  readonly scratch: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/** A build measured. */
export interface IndexRecord {
  readonly case: 'index';
  /** `none`: vectors cost nothing. */
  readonly encoder: string;
  readonly rows: number;
  readonly dimension: number;
  /** Of the corpus. */
  readonly corpusBytes: number;
  /** Of the finished index. */
  readonly indexBytes: number;
  readonly codes: boolean;
  /** From the corpus to the finished index, durable on the disk; the model is loaded before. */
  readonly seconds: number;
  readonly passagesPerS: number;
  readonly stageMs: StageTimes;
  /** Writing as many bytes into one file, with an fsync, on the same disk. */
  readonly diskSeconds: number;
  /** The same texts through the encoder alone, just before; null without an encoder. */
  readonly encodeSeconds: number | null;
  readonly ratioToEncoding: number | null;
  /** Most resident memory of this process up to then. */
  readonly peakMemoryBytes: number;
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
    model === undefined ? new IdleEncoder(dimension) : await openEncoder(model, { workers: threads });
  const out = join(scratch, 'index');
  try {
    // The vectors alone, and with them the corpus comes into memory, for both.
    const encodeSeconds = await encodeAlone(corpus, encoder, signal);
    if (model !== undefined) note(`encoded alone in ${encodeSeconds.toFixed(1)} s`);
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
    };
    return {
      environment: environment({ kernel, engines: [], loadBefore, bandwidthGbPerS: null }),
      records: [record],
    };
  } finally {
    await encoder.close();
  }
}

export function indexReport(
  [record]: readonly IndexRecord[],
  { processor, cores, isa, loadBefore, date }: Environment,
): string {
  if (record === undefined) return 'Nothing was measured.';
  const { stageMs: ms } = record;
  const seconds = (value: number): string => `${(value / 1000).toFixed(2)} s`;
  return [
    `${record.rows} passages × ${record.dimension} into a finished index, encoder ${record.encoder}${record.codes ? '' : ', without codes'}`,
    `${date.slice(0, 10)}, ${processor}, ${cores} cores, ${isa}, load before ${loadBefore.toFixed(1)}`,
    '',
    `${Math.round(record.passagesPerS)} passages/s: ${record.seconds.toFixed(2)} s (scan ${seconds(ms.scan)}, read ${seconds(ms.read)}, encode and write ${seconds(ms.encode)}, finish ${seconds(ms.finish)})`,
    `${(record.indexBytes / 1e9).toFixed(3)} GB of index; the disk alone takes ${record.diskSeconds.toFixed(2)} s for as many`,
    record.encodeSeconds === null
      ? 'The encoder cost nothing.'
      : `${record.ratioToEncoding!.toFixed(3)}× the time of the encoder alone (${record.encodeSeconds.toFixed(2)} s)`,
    `peak memory ${(record.peakMemoryBytes / 1e9).toFixed(2)} GB`,
  ].join('\n');
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

/** Seconds that the encoder takes for the texts, in the batches of a build. */
async function encodeAlone(corpus: readonly string[], encoder: TextEncoder, signal: AbortSignal): Promise<number> {
  const template = parseTemplate(DEFAULT_PASSAGE_TEMPLATE);
  const texts: string[] = [];
  for await (const { row, location } of openCorpus(corpus, { signal, checksums: false })) {
    if (encoder instanceof IdleEncoder) continue;
    texts.push(template(row, location));
  }
  const begun = performance.now();
  const inFlight: Promise<EncodeResult>[] = [];
  for (let first = 0; first < texts.length; first += BATCH_PASSAGES) {
    inFlight.push(encoder.encode(texts.slice(first, first + BATCH_PASSAGES), { kind: 'passage', signal }));
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

/** Seconds for as many bytes into one file, durable. */
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
