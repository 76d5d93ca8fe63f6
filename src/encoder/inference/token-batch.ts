import { TrawlError } from '../../base/errors.ts';
import type { TokenizedText } from '../tokenizer/truncation.ts';

type BatchShape = Pick<TokenBatch, 'rows' | 'length'>;

/** Token ids of several texts, row-major, rows × length. Rows are padded at the end; the attention mask excludes the padding. */
export interface TokenBatch {
  readonly rows: number;
  readonly length: number;
  readonly ids: Int32Array;
  /** Token type of each token: 0 or 1 for the first or second text of a pair. Absent if all are 0. */
  readonly types?: Int32Array;
  readonly tokens: Int32Array;
}

/**
 * `length`: at least the token count of the longest text. Each text must have at least one token. `rows`: at least the texts; rows
 * after them have one token each, because a model may divide by the tokens of a row.
 */
export function tokenBatch(texts: readonly TokenizedText[], length: number, rows = texts.length): TokenBatch {
  const ids = new Int32Array(rows * length);
  const tokens = Int32Array.from({ length: rows }, (_, row) => texts[row]?.ids.length ?? 1);
  const types = texts.some((text) => text.types !== undefined) ? new Int32Array(rows * length) : undefined;
  for (const [row, text] of texts.entries()) {
    ids.set(text.ids, row * length);
    if (text.types !== undefined) types!.set(text.types, row * length);
  }
  return { rows, length, ids, types, tokens };
}

/** What onnxruntime's allocator, the CUDA runtime, cuBLAS and cuDNN say when a device runs out of memory. There is no error code. */
const OUT_OF_MEMORY =
  /failed to allocate memory|out of memory|CUDA failure 2\b|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED/i;

export function isOutOfMemory(text: string): boolean {
  return OUT_OF_MEMORY.test(text);
}

/** The error for a batch that onnxruntime failed on, with `outOfMemory` in its details if a smaller batch may succeed. */
export function runFailure(error: unknown, batch: BatchShape): TrawlError {
  const text = String(error);
  const outOfMemory = isOutOfMemory(text);
  const advice = outOfMemory
    ? ' The device does not have enough free memory: end other programs on it, or lower the token limit of the texts.'
    : '';
  return batchFailure(error, `${text}${advice}`, batch, outOfMemory);
}

export function batchFailure(
  cause: unknown,
  reason: string,
  { rows, length }: BatchShape,
  outOfMemory?: boolean,
): TrawlError {
  return new TrawlError(
    'ENCODER_FAILED',
    `The model failed on ${rows === 1 ? 'a text' : `${rows} texts`} of ${length} tokens: ${reason}`,
    { details: { texts: rows, tokens: length, outOfMemory }, cause },
  );
}
