import { TrawlError } from '../../src/base/errors.ts';
import {
  decodeFlatHeader,
  decodeFp16Header,
  FAISS_FP16_HEADER_BYTES,
  FAISS_HEADER_BYTES,
} from '../../src/engine/vectors/faiss-format.ts';
import { type HeaderFacts, readPart, rowsBehindHeader } from './file-run.ts';
import type { VectorFile, VectorFileFormat } from './vector-file-set.ts';

export const faiss: VectorFileFormat = {
  name: 'faiss',
  endings: ['.index', '.faiss', '.bin'],
  /** `Ix..`, `Iw..`, `IH..`, `IB..` and others. */
  recognises: (head) => /^I[xwHBNvcL][A-Za-z0-9]{2}$/.test(String.fromCharCode(...head.subarray(0, 4))),
  open(files, at) {
    const { metric, ...facts } = readFaissHeader(files[at]!);
    return { metric, ...facts, ...rowsBehindHeader(files, at, facts) };
  },
};

interface FaissFacts extends HeaderFacts {
  readonly metric: 'inner-product' | 'l2';
}

/** @throws TrawlError VECTORS_INVALID if the header is damaged, VECTORS_UNSUPPORTED for index types other than flat. */
function readFaissHeader(file: VectorFile): FaissFacts {
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
