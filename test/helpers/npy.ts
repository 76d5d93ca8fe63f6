import { readFileSync } from 'node:fs';
import { decodeNpy, type Matrix } from '../../bench/vectors/npy.ts';

/** Reads a .npy file of a two-dimensional little-endian float32 array. */
export function readNpy(path: string): Matrix {
  return decodeNpy(readFileSync(path), path);
}
