import { TrawlError } from '../../base/errors.ts';

/**
 * What onnxruntime says if a device has not enough free memory: its own allocator, the CUDA runtime, cuBLAS, cuDNN. It gives no code
 * for it.
 */
const OUT_OF_MEMORY =
  /failed to allocate memory|out of memory|CUDA failure 2\b|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED/i;

/** Whether an error's text says that a device has not enough free memory. */
export function isOutOfMemory(text: string): boolean {
  return OUT_OF_MEMORY.test(text);
}

/** The error for a run that failed: ENCODER_FAILED, with `outOfMemory` in its details if a smaller batch may succeed. */
export function runFailure(
  error: unknown,
  { rows, length }: { readonly rows: number; readonly length: number },
): TrawlError {
  const text = String(error);
  const outOfMemory = isOutOfMemory(text);
  const advice = outOfMemory
    ? ' The device has not enough free memory: end other programs on it, or lower the token limit of the texts.'
    : '';
  return new TrawlError(
    'ENCODER_FAILED',
    `The model failed on ${rows === 1 ? 'a text' : `${rows} texts`} of ${length} tokens: ${text}${advice}`,
    { details: { texts: rows, tokens: length, outOfMemory }, cause: error },
  );
}
