import { usageError } from '../../../src/base/errors.ts';
import { npyResults } from './npy-results.ts';
import { ParquetResults } from './parquet-results.ts';
import type { OutputShape, ResultEncoder } from './result-encoder.ts';
import { jsonlResults, trecResults } from './text-results.ts';

export const OUTPUT_FORMATS = ['jsonl', 'trec', 'parquet', 'npy'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

const ENDINGS: Readonly<Record<string, OutputFormat>> = {
  '.parquet': 'parquet',
  '.npy': 'npy',
  '.trec': 'trec',
  '.run': 'trec',
};

/** The requested format, else the format by the name of the file, else JSON lines. */
export function outputFormatOf(path: string, requested: OutputFormat | undefined): OutputFormat {
  if (requested !== undefined) return requested;
  return Object.entries(ENDINGS).find(([ending]) => path.toLowerCase().endsWith(ending))?.[1] ?? 'jsonl';
}

/** @throws TrawlError USAGE if the format cannot hold the results. */
export function checkOutputFormat(
  format: OutputFormat,
  { isGroup, hasScoreFile }: Pick<OutputShape, 'isGroup' | 'hasScoreFile'>,
): void {
  if (isGroup && (format === 'npy' || format === 'trec')) {
    throw usageError(
      `A ${format === 'npy' ? '.npy file of rows' : 'TREC run'} cannot say from which of several indexes a hit is. Write --out-format jsonl or parquet, which have a column for it, or search each index alone.`,
    );
  }
  if (hasScoreFile && format !== 'npy') {
    throw usageError(`--scores-out is for row numbers as .npy; the format ${format} has the scores beside the rows.`);
  }
}

/** @param state returned by `state()` of an earlier encoder of the same output; undefined at the start. */
export function makeEncoder(format: OutputFormat, shape: OutputShape, state: unknown): ResultEncoder {
  switch (format) {
    case 'jsonl':
      return jsonlResults();
    case 'trec':
      return trecResults(shape.tag);
    case 'npy':
      return npyResults(shape);
    case 'parquet':
      return new ParquetResults(shape, state);
  }
}
