import { readFileSync } from 'node:fs';

export interface FloatMatrix {
  readonly rows: number;
  readonly columns: number;
  /** Row-major. */
  readonly values: Float32Array;
}

/** Reads a .npy file (version 1) of a two-dimensional little-endian float32 array. */
export function readNpy(path: string): FloatMatrix {
  const bytes = readFileSync(path);
  if (bytes.subarray(0, 8).toString('latin1') !== '\x93NUMPY\x01\x00') throw new Error(`${path}: no .npy of version 1`);
  const dataStart = 10 + bytes.readUInt16LE(8);
  const header = bytes.subarray(10, dataStart).toString('latin1');
  const shape = /'descr': '<f4', 'fortran_order': False, 'shape': \((\d+), (\d+)\)/.exec(header);
  if (shape === null) throw new Error(`${path}: no float32 matrix: ${header}`);
  const [rows, columns] = [Number(shape[1]), Number(shape[2])];
  const values = new Float32Array(rows * columns);
  if (bytes.length !== dataStart + values.byteLength) throw new Error(`${path}: has ${bytes.length} bytes`);
  new Uint8Array(values.buffer).set(bytes.subarray(dataStart));
  return { rows, columns, values };
}
