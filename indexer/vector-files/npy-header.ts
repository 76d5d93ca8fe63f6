import { type HeaderFacts, invalid, readPart, rowsBehindHeader, unsupported } from './file-run.ts';
import type { VectorFile, VectorFileFormat } from './vector-file-set.ts';

/**
 * Header of NumPy's file format, versions 1 to 3 (numpy/lib/format.py): magic `\x93NUMPY`, two version bytes, header length
 * (uint16, from version 2 uint32), Python dictionary with `descr`, `fortran_order` and `shape`.
 */
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
/** The dictionary of a plain array has about a hundred bytes. */
const MAX_HEADER_BYTES = 1 << 20;

const REMEDY = "Write it again with numpy: np.save(path, np.ascontiguousarray(array, dtype='<f4')).";
const FROM_OBJECTS =
  "Write it again with numpy: np.save(path, np.stack(np.load(path, allow_pickle=True)).astype('<f4')).";

export const npy: VectorFileFormat = {
  name: 'npy',
  endings: ['.npy'],
  recognises: isNpy,
  open(files, at) {
    const facts = readNpyHeader(files[at]!);
    return { ...facts, ...rowsBehindHeader(files, at, facts) };
  },
};

function isNpy(head: Uint8Array): boolean {
  return MAGIC.every((byte, i) => head[i] === byte);
}

/**
 * The matrix of a .npy file, or of one that begins at byte `at` of an archive.
 *
 * @throws TrawlError VECTORS_INVALID if the header is damaged, VECTORS_UNSUPPORTED unless the array is a C-ordered matrix of
 * little-endian float32 or float16.
 */
export function readNpyHeader(file: VectorFile, at = 0): HeaderFacts {
  const head = readPart(file, 12, at);
  const version = head[6] ?? 0;
  if (!isNpy(head) || head.length < 10) throw invalid(file.path, 'it is not a .npy file, or is incomplete');
  if (version < 1 || version > 3 || head[7] !== 0) {
    throw invalid(file.path, `the .npy format version is ${version}.${head[7]}; expected 1.0, 2.0 or 3.0`);
  }
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const begin = at + (version === 1 ? 10 : 12);
  if (at + head.length < begin) throw invalid(file.path, 'it ends within the .npy header');
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > MAX_HEADER_BYTES || begin + length > file.bytes) {
    throw invalid(file.path, `its .npy header should have ${length} bytes, but the file has ${file.bytes}`);
  }
  const text = new TextDecoder(version === 3 ? 'utf-8' : 'latin1').decode(readPart(file, length, begin));
  return { offset: begin + length, ...matrixShape(file.path, text) };
}

function matrixShape(path: string, header: string): Pick<HeaderFacts, 'rows' | 'dimension' | 'dtype'> {
  const descr = onlyMatch(header, /'descr':\s*('[^']*'|\[)/g);
  const order = onlyMatch(header, /'fortran_order':\s*(True|False)\b/g);
  const shape = onlyMatch(header, /'shape':\s*\(([^)]*)\)/g);
  if (descr === undefined || order === undefined || shape === undefined) {
    throw invalid(path, 'the .npy header must have descr, fortran_order and shape once each');
  }
  const sizes = shape.split(',').map((size) => size.trim());
  if (sizes.at(-1) === '') sizes.pop();
  if (!sizes.every((size) => /^\d{1,15}L?$/.test(size)))
    throw invalid(path, `the shape (${shape}) in the .npy header is invalid`);
  const dtype = descr === "'<f4'" ? 'float32' : descr === "'<f2'" ? 'float16' : undefined;
  if (dtype === undefined)
    throw unsupported(
      path,
      `the values are ${describeType(descr)}; expected little-endian float32 or float16`,
      descr.includes('O') ? FROM_OBJECTS : REMEDY,
    );
  if (order === 'True')
    throw unsupported(path, 'the array is in Fortran order, so its rows are not contiguous', REMEDY);
  if (sizes.length !== 2) {
    const remedy = 'Write it again with numpy: np.save(path, array.reshape(ROWS, DIMENSION)).';
    throw unsupported(path, `the shape is (${shape}); expected (rows, dimension)`, remedy);
  }
  const [rows, dimension] = sizes.map((size) => Number.parseInt(size, 10)) as [number, number];
  if (dimension < 1) throw invalid(path, `the shape is (${shape}); the dimension must not be 0`);
  return { rows, dimension, dtype };
}

/** The first group of the only match; undefined if there are none or several. */
function onlyMatch(text: string, expression: RegExp): string | undefined {
  const found = [...text.matchAll(expression)];
  return found.length === 1 ? found[0]![1] : undefined;
}

function describeType(descr: string): string {
  const name = descr.slice(1, -1);
  if (descr === '[') return 'records';
  if (name.includes('O')) return 'Python objects';
  if (name === '<f8' || name === '>f8') return `float64 (${name})`;
  if (name.startsWith('>')) return `big-endian values (${name})`;
  return `values of type ${JSON.stringify(name)}`;
}
