import { isObject } from '../../src/base/objects.ts';
import { DTYPE_BYTES, type VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { type HeaderFacts, invalid, readPart, rowsWithin, unsupported } from './file-run.ts';
import type { VectorFile, VectorFileFormat } from './vector-file-set.ts';

/** Before the header, which is JSON: its length. */
const LENGTH_BYTES = 8;
const MAX_HEADER_BYTES = 16 * 1024 * 1024;
const DTYPES: Readonly<Record<string, VectorDtype>> = { F32: 'float32', F16: 'float16' };
const REMEDY =
  "Write it again with one matrix: safetensors.torch.save_file({'vectors': tensor.float().contiguous()}, path).";

/** The only matrix in a safetensors file, in place. */
export const safetensors: VectorFileFormat = {
  name: 'safetensors',
  endings: ['.safetensors'],
  recognises: (head) => /^.{4}.\0\0\0\{\s*"/s.test(Buffer.from(head).toString('latin1')),
  open(files, at) {
    const file = files[at]!;
    return rowsWithin(file, onlyMatrix(file), at + 1);
  },
};

function onlyMatrix(file: VectorFile): HeaderFacts {
  const { path, bytes } = file;
  const head = Buffer.from(readPart(file, LENGTH_BYTES));
  if (head.length < LENGTH_BYTES) throw invalid(path, `it has ${head.length} bytes, too few for a safetensors header`);
  const length = Number(head.readBigUInt64LE());
  if (length > MAX_HEADER_BYTES || LENGTH_BYTES + length > bytes) {
    throw invalid(path, `its safetensors header should have ${length} bytes, but the file has ${bytes}`);
  }
  const tensors = Object.entries(readHeader(path, readPart(file, length, LENGTH_BYTES))).filter(
    ([name]) => name !== '__metadata__',
  );
  const matrices = tensors.flatMap(([name, tensor]): HeaderFacts[] => {
    const { dtype: code, shape, data_offsets: offsets } = isObject(tensor) ? tensor : {};
    const dtype = typeof code === 'string' && Object.hasOwn(DTYPES, code) ? DTYPES[code] : undefined;
    if (dtype === undefined || !areCounts(shape) || shape.length !== 2 || !areCounts(offsets)) return [];
    const [rows, dimension] = shape as readonly [number, number];
    const [begin = 0, end = 0] = offsets;
    if (BigInt(rows) * BigInt(dimension) * BigInt(DTYPE_BYTES[dtype]) !== BigInt(end) - BigInt(begin)) {
      throw invalid(path, `${name} has the shape (${rows}, ${dimension}) of ${dtype} and ${end - begin} bytes`);
    }
    return [{ offset: LENGTH_BYTES + length + begin, rows, dimension, dtype }];
  });
  const [only] = matrices;
  if (only !== undefined && matrices.length === 1 && only.dimension > 0) return only;
  const found = tensors.slice(0, 5).map(([name, tensor]) => {
    const { dtype, shape } = isObject(tensor) ? tensor : {};
    return `${name} (${String(dtype)}, ${JSON.stringify(shape)})`;
  });
  const more = tensors.length > found.length ? ` and ${tensors.length - found.length} more` : '';
  throw unsupported(path, `it has the tensors ${found.join(', ')}${more}; expected one matrix of F32 or F16`, REMEDY);
}

function readHeader(path: string, header: Uint8Array): Readonly<Record<string, unknown>> {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(header).toString());
  } catch {
    json = undefined;
  }
  if (!isObject(json)) throw invalid(path, 'its safetensors header is not JSON');
  return json;
}

function areCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && each >= 0);
}
