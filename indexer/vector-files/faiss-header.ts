import { TrawlError } from '../../src/base/errors.ts';
import { decodeFlatHeader, FAISS_HEADER_BYTES } from '../../src/engine/vectors/faiss-format.ts';
import { decodeFp16Header, FAISS_FP16_HEADER_BYTES } from '../../src/engine/vectors/faiss-fp16-format.ts';
import { type HeaderFacts, readPart } from './file-run.ts';
import type { VectorFile } from './vector-file-set.ts';

export interface FaissFacts extends HeaderFacts {
  readonly metric: 'inner-product' | 'l2';
}

/** Whether a file begins like a FAISS index: `Ix..`, `Iw..`, `IH..`, `IB..` and others. */
export function isFaiss(head: Uint8Array): boolean {
  return /^I[xwHBNvcL][A-Za-z0-9]{2}$/.test(String.fromCharCode(...head.subarray(0, 4)));
}

/** @throws TrawlError VECTORS_INVALID if the header is damaged, VECTORS_UNSUPPORTED for index types other than flat. */
export function readFaissHeader(file: VectorFile): FaissFacts {
  const head = readPart(file, FAISS_FP16_HEADER_BYTES);
  const fourcc = String.fromCharCode(...head.subarray(0, 4));
  try {
    if (fourcc === 'IxSQ') {
      return { ...decodeFp16Header(head, file.path), offset: FAISS_FP16_HEADER_BYTES, dtype: 'float16' };
    }
    return {
      ...decodeFlatHeader(head.subarray(0, FAISS_HEADER_BYTES), file.path),
      offset: FAISS_HEADER_BYTES,
      dtype: 'float32',
    };
  } catch (error) {
    if (!(error instanceof TrawlError)) throw error;
    const isFlat = fourcc === 'IxFI' || fourcc === 'IxF2' || fourcc === 'IxSQ';
    const remedy = isFlat
      ? ''
      : ' If faiss can reconstruct the rows, write them with numpy: np.save(path, index.reconstruct_n(0, index.ntotal)).';
    throw new TrawlError(isFlat ? 'VECTORS_INVALID' : 'VECTORS_UNSUPPORTED', `${error.message}${remedy}`, {
      details: { path: file.path },
      cause: error,
    });
  }
}
