import { TrawlError } from '../src/errors.ts';
import type { EmbeddingFile } from './embedding-set.ts';
import { type HeaderFacts, invalid, readPart } from './file-run.ts';

/**
 * The header of NumPy's file format, versions 1 to 3 (numpy/lib/format.py): the magic `\x93NUMPY`, two bytes of version,
 * the length of the header (uint16, from version 2 on uint32), and a Python dictionary with `descr`, `fortran_order` and
 * `shape`.
 */
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
/** Dictionaries of plain arrays have some hundred bytes. */
const MOST_HEADER_BYTES = 1 << 20;

const WAY_OUT = "Write it again with numpy: np.save(path, np.ascontiguousarray(array, dtype='<f4'))";

export function isNpy(head: Uint8Array): boolean {
  return MAGIC.every((byte, i) => head[i] === byte);
}

/** @throws TrawlError VECTORS_INVALID where it is damaged, VECTORS_UNSUPPORTED where the array is of another kind. */
export function readNpyHeader(file: EmbeddingFile): HeaderFacts {
  const head = readPart(file, 12);
  const version = head[6] ?? 0;
  if (!isNpy(head) || head.length < 10) throw invalid(file.path, 'is no whole .npy file');
  if (version < 1 || version > 3 || head[7] !== 0) {
    throw invalid(file.path, `is a .npy file of version ${version}.${head[7]}; 1.0 to 3.0 are known`);
  }
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const begin = version === 1 ? 10 : 12;
  if (head.length < begin) throw invalid(file.path, 'ends within the header of a .npy file');
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > MOST_HEADER_BYTES || begin + length > file.bytes) {
    throw invalid(file.path, `has ${file.bytes} bytes, but says that its .npy header has ${length}`);
  }
  const text = new TextDecoder(version === 3 ? 'utf-8' : 'latin1').decode(readPart(file, length, begin));
  return { offset: begin + length, ...shapeOf(file.path, text) };
}

function shapeOf(path: string, header: string): Pick<HeaderFacts, 'rows' | 'dimension' | 'dtype'> {
  const descr = only(header, /'descr':\s*('[^']*'|\[)/g);
  const order = only(header, /'fortran_order':\s*(True|False)\b/g);
  const shape = only(header, /'shape':\s*\(([^)]*)\)/g);
  if (descr === undefined || order === undefined || shape === undefined) {
    throw invalid(path, 'the header of the .npy file has not once each of descr, fortran_order and shape');
  }
  const sizes = shape.split(',').map((size) => size.trim());
  if (sizes.at(-1) === '') sizes.pop();
  if (!sizes.every((size) => /^\d{1,15}L?$/.test(size))) throw invalid(path, `the shape (${shape}) is none`);
  const dtype = descr === "'<f4'" ? 'float32' : descr === "'<f2'" ? 'float16' : undefined;
  if (dtype === undefined)
    throw unsupported(path, `holds ${kindOf(descr)}; float32 and float16, little-endian, are read`);
  if (order === 'True') throw unsupported(path, 'is in Fortran order, its rows are not in one piece');
  if (sizes.length !== 2) throw unsupported(path, `has shape (${shape}); rows × dimension is needed`);
  const [rows, dimension] = sizes.map((size) => Number.parseInt(size, 10)) as [number, number];
  if (dimension < 1) throw invalid(path, `the shape is (${shape})`);
  return { rows, dimension, dtype };
}

/** What the expression finds, where it finds one thing only. */
function only(text: string, expression: RegExp): string | undefined {
  const found = [...text.matchAll(expression)];
  return found.length === 1 ? found[0]![1] : undefined;
}

function kindOf(descr: string): string {
  const name = descr.slice(1, -1);
  if (descr === '[') return 'records';
  if (name.includes('O')) return 'Python objects';
  if (name === '<f8' || name === '>f8') return `float64 (${name})`;
  if (name.startsWith('>')) return `big-endian values (${name})`;
  return `values of type ${JSON.stringify(name)}`;
}

function unsupported(path: string, reason: string): TrawlError {
  return new TrawlError('VECTORS_UNSUPPORTED', `${path}: ${reason}. ${WAY_OUT}.`, { details: { path } });
}
