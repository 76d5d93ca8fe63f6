import { closeSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';
import { invalid, readPart } from './file-run.ts';
import type { VectorFile, VectorFileFormat, VectorRow } from './vector-file-set.ts';

/** Bytes of the dimension before each vector. */
const HEAD_BYTES = 4;
const MAX_DIMENSION = 1 << 20;
const BLOCK_BYTES = 8 * 1024 * 1024;

/**
 * `.fvecs` and `.bvecs`, the formats of the SIFT and GIST data sets (http://corpus-texmex.irisa.fr): each vector is its dimension as a
 * little-endian int32, then its values as little-endian float32 or as bytes. All vectors of a file have one dimension.
 */
export const fvecs: VectorFileFormat = {
  name: 'fvecs',
  endings: ['.fvecs', '.bvecs'],
  recognises: (_head, path) => /\.[fbi]vecs$/i.test(path),
  open(files, at) {
    const file = files[at]!;
    if (/\.ivecs$/i.test(file.path)) {
      throw new TrawlError(
        'VECTORS_UNSUPPORTED',
        `${file.path}: an .ivecs file has row numbers, such as the true neighbours of queries, not vectors. Name the .fvecs file.`,
        { details: { path: file.path } },
      );
    }
    return { read: () => rowsOf(file), next: at + 1 };
  },
};

function* rowsOf(file: VectorFile): Generator<VectorRow> {
  const { path, bytes } = file;
  const valueBytes = /\.bvecs$/i.test(path) ? 1 : 4;
  const head = readPart(file, HEAD_BYTES);
  if (head.length < HEAD_BYTES) throw invalid(path, 'it has no vector');
  const dimension = Buffer.from(head).readInt32LE();
  if (dimension < 1 || dimension > MAX_DIMENSION) {
    throw invalid(path, `its first vector has ${dimension} dimensions, so it is not an .fvecs file`);
  }
  const rowBytes = HEAD_BYTES + valueBytes * dimension;
  if (bytes % rowBytes !== 0) {
    throw invalid(path, `its ${bytes} bytes are not a multiple of ${rowBytes}, the bytes of a vector of ${dimension}`);
  }
  const block = Buffer.alloc(Math.max(1, Math.floor(BLOCK_BYTES / rowBytes)) * rowBytes);
  const opened = openSync(path, 'r');
  try {
    for (let at = 0; at < bytes; ) {
      const wanted = Math.min(block.length, bytes - at);
      let held = 0;
      while (held < wanted) {
        const got = readSync(opened, block, held, wanted - held, at + held);
        if (got === 0) throw invalid(path, 'it became shorter while it was read');
        held += got;
      }
      for (let start = 0; start < wanted; start += rowBytes) {
        const own = block.readInt32LE(start);
        if (own !== dimension) {
          throw invalid(path, `vector ${(at + start) / rowBytes} has ${own} dimensions, the first one ${dimension}`);
        }
        const values = start + HEAD_BYTES;
        const vector =
          valueBytes === 1
            ? block.subarray(values, values + dimension)
            : Float32Array.from({ length: dimension }, (_, i) => block.readFloatLE(values + 4 * i));
        yield { vector };
      }
      at += wanted;
    }
  } finally {
    closeSync(opened);
  }
}
