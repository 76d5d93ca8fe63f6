import { resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import { openBaselineScript } from '../baselines.ts';
import type { IndexRecord } from './index-record.ts';

export const INDEX_BASELINES = ['flashrag'] as const;

export interface IndexBaseline {
  readonly python: string;
  /** The sentence-transformers checkpoint that the model was imported from. */
  readonly model: string;
}

/** Texts in a batch of the baseline. FlashRAG's default of 512 is for GPUs. */
const BASELINE_BATCH = 32;

interface BaselineBuild {
  readonly version: string;
  readonly rows: number;
  readonly seconds: number;
  readonly encodeSeconds: number;
  readonly peakBytes: number;
  readonly bytes: number;
}

/** Runs bench/baselines/build_flashrag.py. The corpus must be one file. */
export async function buildBaseline(
  { python, model }: IndexBaseline,
  corpus: readonly string[],
  identity: ModelIdentity,
  { threads, scratch }: { readonly threads: number; readonly scratch: string },
): Promise<IndexRecord> {
  const [file] = corpus;
  if (file === undefined || corpus.length > 1)
    throw new TrawlError('USAGE', 'The baseline reads only one corpus file. Give one --corpus, or --against none.');
  const script = openBaselineScript<BaselineBuild>('build_flashrag', 'flashrag', { python, threads });
  try {
    const { version, rows, seconds, encodeSeconds, peakBytes, bytes } = await script.ask({
      do: 'build',
      model: resolve(model),
      corpus: resolve(file),
      out: scratch,
      maxLength: identity.maxTokens.passage!,
      batch: BASELINE_BATCH,
      instruction: identity.prefixes.passage,
    });
    return {
      case: 'index',
      engine: `flashrag: ${version}`,
      encoder: identity.name,
      rows,
      dimension: identity.dimension,
      corpusBytes: 0,
      indexBytes: bytes,
      codes: false,
      seconds,
      passagesPerS: rows / seconds,
      stageMs: null,
      diskSeconds: null,
      encodeSeconds,
      ratioToEncoding: seconds / encodeSeconds,
      peakMemoryBytes: peakBytes,
      ratioToBaseline: null,
    };
  } finally {
    await script.close();
  }
}
