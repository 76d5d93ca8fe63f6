import { TrawlError } from '../../src/base/errors.ts';

/** A matrix of float32, row-major. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

const MAGIC = '\u0093NUMPY';

/** NumPy's file format, version 1. */
export function encodeNpy({ rows, columns, values }: Matrix): Uint8Array {
  const description = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${columns}), }`;
  // Magic, version and length take 10 bytes; the format aligns the values to 64.
  const padded = `${description.padEnd(Math.ceil((10 + description.length + 1) / 64) * 64 - 11)}\n`;
  const header = Buffer.from(`${MAGIC}\u0001\u0000\u0000\u0000${padded}`, 'latin1');
  header.writeUInt16LE(padded.length, 8);
  return Buffer.concat([header, Buffer.from(values.buffer, values.byteOffset, rows * columns * 4)]);
}

/** @throws TrawlError INDEX_FILE_FOREIGN unless it is a two-dimensional little-endian float32 array in C order. */
export function decodeNpy(bytes: Uint8Array, file: string): Matrix {
  const foreign = (reason: string): TrawlError =>
    new TrawlError('INDEX_FILE_FOREIGN', `${file}: ${reason}. Give a .npy file of float32, queries × dimension.`);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < 12 || buffer.toString('latin1', 0, 6) !== MAGIC) throw foreign('is not a .npy file');
  const long = buffer[6]! > 1;
  const start = long ? 12 : 10;
  const end = start + (long ? buffer.readUInt32LE(8) : buffer.readUInt16LE(8));
  const header = buffer.toString('latin1', start, end);
  const [, descr] = /'descr':\s*'([^']*)'/.exec(header) ?? [];
  const [, rows, columns] = /'shape':\s*\((\d+),\s*(\d+)\)/.exec(header) ?? [];
  if (descr !== '<f4') throw foreign(`has values of ${descr === undefined ? 'an unknown type' : `type ${descr}`}`);
  if (!/'fortran_order':\s*False/.test(header)) throw foreign('is in Fortran order');
  if (rows === undefined || columns === undefined) throw foreign('does not have two dimensions');
  const values = new Float32Array(Number(rows) * Number(columns));
  if (buffer.length - end !== values.byteLength)
    throw foreign(`has ${buffer.length - end} bytes of values, not ${values.byteLength}`);
  buffer.copy(new Uint8Array(values.buffer), 0, end);
  return { rows: Number(rows), columns: Number(columns), values };
}
