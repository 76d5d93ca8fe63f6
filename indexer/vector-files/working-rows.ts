import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug } from '../../src/base/errors.ts';
import { invalid } from './file-run.ts';
import type { VectorPart, VectorRow, VectorStream } from './vector-file-set.ts';

const BLOCK_VALUES = 1024 * 1024;

/** The working file to which rows are copied that cannot be used in place, as float32. It exists once a row was copied. */
export class WorkingRows {
  readonly #path: string | undefined;
  #file: number | undefined;
  #bytes = 0;

  constructor(path: string | undefined) {
    this.#path = path;
  }

  get isUsed(): boolean {
    return this.#file !== undefined;
  }

  /** Copies the rows of the vector file `path`. Throws VECTORS_INVALID, DISK_FULL, CANCELLED. */
  async copy(path: string, { read, next }: VectorStream, signal: AbortSignal | undefined): Promise<VectorPart> {
    const offset = this.#bytes;
    const ids: string[] = [];
    let block = new Float32Array(0);
    let [rows, dimension, filled] = [0, 0, 0];
    for await (const row of read()) {
      if (rows === 0) {
        dimension = row.vector.length;
        if (dimension === 0) throw invalid(path, 'row 0 has no values');
        block = new Float32Array(Math.max(1, Math.floor(BLOCK_VALUES / dimension)) * dimension);
      }
      checkRow(path, row, { rows, ids: ids.length, dimension });
      block.set(row.vector, filled);
      filled += dimension;
      if (filled === block.length) {
        throwIfCancelled(signal);
        this.#write(block);
        filled = 0;
      }
      if (row.id !== undefined) ids.push(row.id);
      rows++;
    }
    if (rows === 0) throw invalid(path, 'it has no rows');
    this.#write(block.subarray(0, filled));
    const segments = [{ path: this.#path!, offset, bytes: this.#bytes - offset, dtype: 'float32' as const }];
    return { rows, dimension, dtype: 'float32', segments, ids: ids.length === 0 ? undefined : ids, next };
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }

  #write(values: Float32Array): void {
    if (this.#path === undefined) throw bug('vectors have to be copied, and no working file is named');
    if (this.#file === undefined) {
      mkdirSync(dirname(this.#path), { recursive: true });
      this.#file = openSync(this.#path, 'wx');
    }
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#file, bytes, done);
    this.#bytes += bytes.length;
  }
}

function checkRow(
  path: string,
  { vector, id }: VectorRow,
  { rows, ids, dimension }: { readonly rows: number; readonly ids: number; readonly dimension: number },
): void {
  if (vector.length !== dimension) {
    throw invalid(path, `row ${rows} has ${vector.length} values, the rows before it have ${dimension}`);
  }
  if ((id === undefined) === ids < rows || rows === 0) return;
  throw invalid(path, `row ${rows} has ${id === undefined ? 'no id' : 'an id'}, unlike the rows before it`);
}
