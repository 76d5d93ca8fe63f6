import { TrawlError } from '../../src/base/errors.ts';
import {
  decodeFlatHeader,
  decodeFp16Header,
  FAISS_FP16_HEADER_BYTES,
  FAISS_HEADER_BYTES,
  otherFaissKind,
} from '../../src/engine/vectors/faiss-format.ts';
import { DTYPE_BYTES } from '../../src/engine/vectors/vector-segments.ts';
import { type HeaderFacts, invalid, readPart, rowsBehindHeader, rowsWithin, unsupported } from './file-run.ts';
import type { VectorFile, VectorFileFormat, VectorPart } from './vector-file-set.ts';

/** Flat files of FAISS, with or without a map of ids around them. */
export const faiss: VectorFileFormat = {
  name: 'faiss',
  endings: ['.index', '.faiss', '.bin'],
  recognises: (head) => /^I[xwHBNvcLP2S][A-Za-z0-9]{2}$/.test(fourccOf(head)),
  open(files, at) {
    const file = files[at]!;
    if (ID_MAPS.includes(fourccOf(readPart(file, 4)))) return idMap(file, at + 1);
    const { metric, ...facts } = readFaissHeader(file);
    return { metric, ...facts, ...rowsBehindHeader(files, at, facts) };
  },
};

interface FaissFacts extends HeaderFacts {
  readonly metric: 'inner-product' | 'l2';
}

/** `IndexIDMap` and `IndexIDMap2`: a header, the index of the rows, and the id of each row. */
const ID_MAPS = ['IxMp', 'IxM2'];
/** The fields of `write_index_header` with the fourcc. */
const OUTER_HEADER_BYTES = 37;
const ID_BYTES = 8;
const BLOCK_IDS = 1024 * 1024;

/** How rows are read from an index in Python, without FAISS's errors that end Python. */
const ROWS = 'index.reconstruct_n(0, index.ntotal)';
const INNER_ROWS = 'faiss.downcast_index(index.index).reconstruct_n(0, index.ntotal)';

/** @throws TrawlError VECTORS_INVALID if the header is damaged, VECTORS_UNSUPPORTED for index types other than flat. */
function readFaissHeader(file: VectorFile, at = 0): FaissFacts {
  const head = readPart(file, FAISS_FP16_HEADER_BYTES, at);
  const fourcc = fourccOf(head);
  const kind = otherFaissKind(fourcc);
  try {
    if (fourcc === 'IxSQ') {
      return { ...decodeFp16Header(head, file.path), offset: at + FAISS_FP16_HEADER_BYTES, dtype: 'float16' };
    }
    if (kind !== undefined) throw notFlat(file, kind, fourcc, at > 0);
    return {
      ...decodeFlatHeader(head.subarray(0, FAISS_HEADER_BYTES), file.path),
      offset: at + FAISS_HEADER_BYTES,
      dtype: 'float32',
    };
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code === 'VECTORS_UNSUPPORTED') throw error;
    const isFlat = fourcc === 'IxFI' || fourcc === 'IxF2' || fourcc === 'IxSQ';
    throw new TrawlError(isFlat ? 'VECTORS_INVALID' : 'VECTORS_UNSUPPORTED', error.message, {
      details: { path: file.path },
      cause: error,
    });
  }
}

function notFlat(
  { path }: VectorFile,
  { what, isExact }: NonNullable<ReturnType<typeof otherFaissKind>>,
  fourcc: string,
  isInner: boolean,
): TrawlError {
  const found = `it is a FAISS file with ${isInner ? 'an ID map around ' : ''}${what} (${fourcc}); expected a flat index with inner product or L2`;
  if (!isExact) {
    return unsupported(
      path,
      found,
      'It does not have the exact rows: name the vectors that it was made from, or embed the corpus again.',
    );
  }
  const rows = isInner ? INNER_ROWS : ROWS;
  return unsupported(
    path,
    found,
    `Write its rows with numpy: python -c "import faiss, numpy; index = faiss.read_index('${path}'); numpy.save('vectors.npy', ${rows})".` +
      (fourcc === 'IwFl' ? ' This needs ids that are row numbers.' : ''),
  );
}

function idMap(file: VectorFile, next: number): VectorPart {
  const { metric, ...facts } = readFaissHeader(file, OUTER_HEADER_BYTES);
  const part = rowsWithin(file, facts, next);
  const { offset, rows, dimension, dtype } = facts;
  return { ...part, metric, ids: idsAt(file, offset + rows * dimension * DTYPE_BYTES[dtype], rows) };
}

/** The ids of the rows; undefined if they are the row numbers. */
function idsAt(file: VectorFile, at: number, rows: number): string[] | undefined {
  const expected = at + ID_BYTES * (1 + rows);
  if (file.bytes !== expected || Buffer.from(readPart(file, ID_BYTES, at)).readBigUInt64LE() !== BigInt(rows)) {
    throw invalid(
      file.path,
      `an ID map of ${rows} rows should have ${expected} bytes and ${rows} ids, but it has ${file.bytes} bytes`,
    );
  }
  const ids: string[] = [];
  let areRows = true;
  for (let row = 0; row < rows; row += BLOCK_IDS) {
    const count = Math.min(BLOCK_IDS, rows - row);
    const block = Buffer.from(readPart(file, ID_BYTES * count, at + ID_BYTES * (1 + row)));
    for (let i = 0; i < count; i++) {
      const id = block.readBigInt64LE(ID_BYTES * i);
      areRows &&= id === BigInt(row + i);
      ids.push(String(id));
    }
  }
  return areRows ? undefined : ids;
}

function fourccOf(head: Uint8Array): string {
  return String.fromCharCode(...head.subarray(0, 4));
}
