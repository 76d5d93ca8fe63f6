import { TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { repeatedKey } from './json-keys.ts';

/** Bytes per element, by the format's type names. */
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

/** A tensor as the header describes it. */
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
 */
export function parseHeader(path: string, header: Uint8Array, dataBytes: number): ReadonlyMap<string, TensorEntry> {
  const text = decodeText(path, header);
  const value = parseObject(path, text);
  const repeated = repeatedKey(text);
  if (repeated !== null) throw brokenCheckpoint(path, `lists ${JSON.stringify(repeated)} twice in its header`);
  const entries: TensorEntry[] = [];
  for (const [name, description] of Object.entries(value)) {
    if (name !== '__metadata__') entries.push(parseEntry(path, name, description));
  }
  checkRanges(path, entries, dataBytes);
  return new Map(entries.map((entry) => [entry.name, entry]));
}

function decodeText(path: string, header: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(header);
  } catch {
    throw brokenCheckpoint(path, 'has a header that is not UTF-8 text');
  }
}

function parseObject(path: string, text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw brokenCheckpoint(path, `has a header that is not JSON (${(error as Error).message.slice(0, 200)})`);
  }
  if (!isObject(value)) throw brokenCheckpoint(path, 'has a header that is not a JSON object');
  return value;
}

function parseEntry(path: string, name: string, description: unknown): TensorEntry {
  const tensor = `tensor ${JSON.stringify(name)}`;
  if (!isObject(description))
    throw brokenCheckpoint(path, `is damaged: the header entry of ${tensor} is not an object`);
  const { dtype, shape, data_offsets: offsets } = description;
  const elementBytes = typeof dtype === 'string' && Object.hasOwn(ELEMENT_BYTES, dtype) ? ELEMENT_BYTES[dtype]! : 0;
  if (elementBytes === 0) {
    const known = Object.keys(ELEMENT_BYTES).join(', ');
    throw brokenCheckpoint(
      path,
      `is damaged: ${tensor} has the type ${JSON.stringify(dtype)}; expected one of ${known}`,
    );
  }
  if (!isCounts(shape)) {
    throw brokenCheckpoint(
      path,
      `is damaged: ${tensor} has the shape ${JSON.stringify(shape)}; it must be a list of whole numbers from 0`,
    );
  }
  if (!isCounts(offsets) || offsets.length !== 2) {
    throw brokenCheckpoint(
      path,
      `is damaged: ${tensor} has the byte range ${JSON.stringify(offsets)}; it must be [begin, end]`,
    );
  }
  const [begin, end] = offsets as [number, number];
  const elements = shape.reduce((product, length) => product * length, 1);
  // Above 2^53 the product is inexact, but no byte range is that long, so the check still fails.
  if (end - begin !== elements * elementBytes) {
    throw brokenCheckpoint(
      path,
      `is damaged: ${tensor} has ${end - begin} bytes; its type ${dtype} and shape [${shape.join(', ')}] need ` +
        `${elements * elementBytes}`,
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

export function brokenCheckpoint(path: string, what: string): TrawlError {
  return new TrawlError('MODEL_INVALID', `${path} ${what}. Fetch or save the checkpoint again.`);
}
