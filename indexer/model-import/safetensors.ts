import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isNodeError, type TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { invalidModel, isLfsPointer, lfsPointer } from '../../src/encoder/model/json-file.ts';

/** Limit of the reference implementation. A header has about a hundred bytes per tensor. */
const MAX_HEADER_BYTES = 100_000_000;
/** Elements per piece of `chunks`. */
const CHUNK_ELEMENTS = 4 * 1024 * 1024;

export type SafetensorsFile = Awaited<ReturnType<typeof openSafetensors>>;

/**
 * Opens a safetensors file (https://github.com/huggingface/safetensors): header length (8 bytes, little-endian), JSON header,
 * tensor data. Reads and checks the header; tensor data is read on demand. Throws MODEL_INVALID, with the path in the message, and so do
 * the methods.
 */
export async function openSafetensors(path: string) {
  let file: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe would block.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const isMissing = isNodeError(error) && error.code === 'ENOENT';
    throw invalidModel(
      isMissing
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
    return {
      path,
      tensors: parseHeader(path, header, status.size - dataStart),
      /** The stored bytes of a tensor in pieces of whole rows (its last dimension): as many as fit 4 Mi elements, at least one. */
      async *chunks({ shape, elements, elementBytes, begin }: TensorEntry): AsyncGenerator<Uint8Array<ArrayBuffer>> {
        const row = shape.at(-1) ?? 1;
        const step = Math.max(1, Math.floor(CHUNK_ELEMENTS / Math.max(1, row))) * row;
        for (let first = 0; first < elements; first += step) {
          const length = Math.min(step, elements - first) * elementBytes;
          yield await readBytes(path, file, dataStart + begin + first * elementBytes, length);
        }
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function readHeader(path: string, file: FileHandle, size: number): Promise<Uint8Array> {
  if (size < 8) {
    throw brokenCheckpoint(path, `has ${size} bytes; a safetensors file begins with an 8-byte header length`);
  }
  const length = (await readBytes(path, file, 0, 8)).readBigUInt64LE();
  if (size < 1_000 && isLfsPointer((await readBytes(path, file, 0, size)).toString())) throw lfsPointer(path);
  if (length > BigInt(size - 8)) {
    throw brokenCheckpoint(
      path,
      `is incomplete or not a safetensors file: its header should have ${length} bytes, the file has ${size}`,
    );
  }
  if (length > BigInt(MAX_HEADER_BYTES)) {
    throw brokenCheckpoint(path, `has a header of ${length} bytes; at most ${MAX_HEADER_BYTES} are allowed`);
  }
  return readBytes(path, file, 8, Number(length));
}

async function readBytes(path: string, file: FileHandle, start: number, length: number): Promise<Buffer<ArrayBuffer>> {
  // Not from Buffer's pool, so that the values can be read as float32 from the first byte on.
  const bytes = Buffer.from(new ArrayBuffer(length));
  for (let done = 0; done < length; ) {
    // One call reads at most 2 GiB.
    const { bytesRead } = await file.read(bytes, done, Math.min(length - done, 2 ** 30), start + done);
    if (bytesRead === 0) {
      throw brokenCheckpoint(path, `ends at byte ${start + done}, within a tensor: the file changed while it was read`);
    }
    done += bytesRead;
  }
  return bytes;
}

const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
  F8_E8M0: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
  C64: 8,
};

export interface TensorEntry {
  readonly name: string;
  readonly dtype: string;
  readonly elementBytes: number;
  readonly shape: readonly number[];
  /** Product of the shape; 1 for a scalar. */
  readonly elements: number;
  /** Byte range [begin, end), relative to the end of the header. */
  readonly begin: number;
  readonly end: number;
}

/**
 * Parses a header with the checks of the reference implementation: types are known, byte ranges match shape and type, have
 * no overlaps or gaps, and end at the end of the file. Throws MODEL_INVALID.
 *
 * @internal Exported for tests.
 */
export function parseHeader(path: string, header: Uint8Array, dataBytes: number): ReadonlyMap<string, TensorEntry> {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(header);
    value = JSON.parse(text);
  } catch (error) {
    const fault = error instanceof SyntaxError ? `JSON (${error.message.slice(0, 200)})` : 'UTF-8 text';
    throw brokenCheckpoint(path, `has a header that is not ${fault}`);
  }
  if (!isObject(value)) throw brokenCheckpoint(path, 'has a header that is not a JSON object');
  const repeated = repeatedKey(text);
  if (repeated !== undefined) throw brokenCheckpoint(path, `lists ${JSON.stringify(repeated)} twice in its header`);
  const entries = Object.entries(value)
    .filter(([name]) => name !== '__metadata__')
    .map(([name, description]) => parseEntry(path, name, description));
  checkRanges(path, entries, dataBytes);
  return new Map(entries.map((entry) => [entry.name, entry]));
}

function parseEntry(path: string, name: string, description: unknown): TensorEntry {
  const tensor = `tensor ${JSON.stringify(name)}`;
  const damaged = (fault: string) => brokenCheckpoint(path, `is damaged: ${fault}`);
  if (!isObject(description)) throw damaged(`the header entry of ${tensor} is not an object`);
  const { dtype, shape, data_offsets: offsets } = description;
  const elementBytes = typeof dtype === 'string' && Object.hasOwn(ELEMENT_BYTES, dtype) ? ELEMENT_BYTES[dtype]! : 0;
  if (elementBytes === 0) {
    const known = Object.keys(ELEMENT_BYTES).join(', ');
    throw damaged(`${tensor} has the type ${JSON.stringify(dtype)}; expected one of ${known}`);
  }
  if (!isCounts(shape)) {
    throw damaged(`${tensor} has the shape ${JSON.stringify(shape)}; it must be a list of whole numbers from 0`);
  }
  if (!isCounts(offsets) || offsets.length !== 2) {
    throw damaged(`${tensor} has the byte range ${JSON.stringify(offsets)}; it must be [begin, end]`);
  }
  const [begin, end] = offsets as [number, number];
  const elements = shape.reduce((product, length) => product * length, 1);
  // Above 2^53 the product is inexact, but no byte range is that long, so the check still fails.
  if (end - begin !== elements * elementBytes) {
    throw damaged(
      `${tensor} has ${end - begin} bytes; its type ${dtype} and shape [${shape.join(', ')}] need ${elements * elementBytes}`,
    );
  }
  return { name, dtype: dtype as string, elementBytes, shape, elements, begin, end };
}

function checkRanges(path: string, entries: readonly TensorEntry[], dataBytes: number): void {
  let at = 0;
  for (const { name, begin, end } of entries.toSorted((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== at) {
      const how = begin < at ? 'overlaps the tensor before it' : 'leaves a gap before it';
      throw brokenCheckpoint(
        path,
        `is damaged: tensor ${JSON.stringify(name)} ${how} (it begins at byte ${begin} instead of ${at})`,
      );
    }
    at = end;
  }
  if (at === dataBytes) return;
  throw brokenCheckpoint(
    path,
    dataBytes < at
      ? `is incomplete: it has ${dataBytes} bytes of tensors; its header describes ${at}`
      : `is damaged: it has ${dataBytes} bytes of tensors; its header describes only ${at}`,
  );
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

function brokenCheckpoint(path: string, what: string): TrawlError {
  return invalidModel(`${path} ${what}. Fetch or save the checkpoint again.`);
}

/**
 * The first key that the outermost object of a valid JSON text repeats, if any. `JSON.parse` silently keeps the last
 * value; in a tensor list a repeated key means that the file is damaged.
 */
function repeatedKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/gy;
  const between = /[^"{}[\]:]+/y;
  let last = '';
  for (let at = 0; at < json.length; ) {
    between.lastIndex = at;
    if (between.test(json)) at = between.lastIndex;
    token.lastIndex = at;
    const found = token.exec(json)?.[0];
    if (found === undefined) break;
    at = token.lastIndex;
    if (found === '{' || found === '[') depth++;
    else if (found === '}' || found === ']') depth--;
    else if (found !== ':') last = found;
    else if (depth === 1) {
      const key = JSON.parse(last) as string;
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}
