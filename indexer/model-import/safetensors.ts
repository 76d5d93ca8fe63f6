import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { isLfsPointer, lfsPointer } from '../../src/encoder/model/json-file.ts';
import { brokenCheckpoint, parseHeader, type TensorEntry } from './safetensors-header.ts';

/** Limit of the reference implementation. A header has about a hundred bytes per tensor. */
const MAX_HEADER_BYTES = 100_000_000;
/** Elements per piece of `chunks`. */
const CHUNK_ELEMENTS = 4 * 1024 * 1024;

/**
 * One safetensors file (https://github.com/huggingface/safetensors): header length (8 bytes, little-endian), JSON header,
 * tensor data. `open` reads and checks the header; tensor data is read on demand. Methods throw MODEL_INVALID, with the path
 * in the message.
 */
export class SafetensorsFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly #file: FileHandle;
  readonly #dataStart: number;

  private constructor(path: string, file: FileHandle, tensors: ReadonlyMap<string, TensorEntry>, dataStart: number) {
    this.path = path;
    this.#file = file;
    this.tensors = tensors;
    this.#dataStart = dataStart;
  }

  static async open(path: string): Promise<SafetensorsFile> {
    let file: FileHandle;
    try {
      // Without O_NONBLOCK, opening a named pipe would block.
      file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      const missing = isNodeError(error) && error.code === 'ENOENT';
      throw new TrawlError(
        'MODEL_INVALID',
        missing
          ? `${path} is missing. The checkpoint is incomplete: fetch it again.`
          : `Cannot read ${path}: ${(error as Error).message}.`,
        { cause: error },
      );
    }
    try {
      const status = await file.stat();
      if (!status.isFile()) throw brokenCheckpoint(path, 'is not a file');
      const header = await readHeader(path, file, status.size);
      const dataStart = 8 + header.length;
      const tensors = parseHeader(path, header, status.size - dataStart);
      return new SafetensorsFile(path, file, tensors, dataStart);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The stored bytes of a tensor's elements [first, first + count). */
  async read(tensor: TensorEntry, first: number, count: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(count * tensor.elementBytes);
    const start = this.#dataStart + tensor.begin + first * tensor.elementBytes;
    await readFully(this.path, this.#file, bytes, start);
    return bytes;
  }

  /** A tensor in pieces of whole rows (its last dimension): as many as fit 4 Mi elements, at least one. */
  async *chunks(tensor: TensorEntry): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const row = tensor.shape.at(-1) ?? 1;
    const step = Math.max(1, Math.floor(CHUNK_ELEMENTS / Math.max(1, row))) * row;
    for (let first = 0; first < tensor.elements; first += step) {
      yield await this.read(tensor, first, Math.min(step, tensor.elements - first));
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function readHeader(path: string, file: FileHandle, size: number): Promise<Uint8Array> {
  if (size < 8)
    throw brokenCheckpoint(path, `has ${size} bytes; a safetensors file begins with an 8-byte header length`);
  const prefix = new Uint8Array(8);
  await readFully(path, file, prefix, 0);
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  if (size < 1_000 && isLfsPointer(await firstText(path, file, size))) throw lfsPointer(path);
  if (length > BigInt(size - 8)) {
    throw brokenCheckpoint(
      path,
      `is incomplete or not a safetensors file: its header should have ${length} bytes, the file has ${size}`,
    );
  }
  if (length > BigInt(MAX_HEADER_BYTES)) {
    throw brokenCheckpoint(path, `has a header of ${length} bytes; at most ${MAX_HEADER_BYTES} are allowed`);
  }
  const header = new Uint8Array(Number(length));
  await readFully(path, file, header, 8);
  return header;
}

async function firstText(path: string, file: FileHandle, size: number): Promise<string> {
  const bytes = new Uint8Array(size);
  await readFully(path, file, bytes, 0);
  return new TextDecoder().decode(bytes);
}

async function readFully(path: string, file: FileHandle, target: Uint8Array, start: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    // One call reads at most 2 GiB.
    const wanted = Math.min(target.length - done, 2 ** 30);
    const { bytesRead } = await file.read(target, done, wanted, start + done);
    if (bytesRead === 0)
      throw brokenCheckpoint(path, `ends at byte ${start + done}, within a tensor: the file changed while it was read`);
    done += bytesRead;
  }
}
