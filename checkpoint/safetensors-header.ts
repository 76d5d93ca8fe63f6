import { TrawlError } from '../src/errors.ts';
import { repeatedKey } from './json-keys.ts';

/** Bytes of an element by the format's names of types. */
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
  /** Product of the shape: 1 for a scalar, 0 where a dimension is 0. */
  readonly elements: number;
  /** Byte range from the end of the header. */
  readonly begin: number;
  readonly end: number;
}

/**
 * The tensors of a header, checked as the reference implementation checks them: known types, byte ranges that fit shape
 * and type, that follow each other without overlap or gap, and that end where the file ends. Throws MODEL_INVALID.
 */
export function parseHeader(path: string, header: Uint8Array, dataBytes: number): ReadonlyMap<string, TensorEntry> {
  const text = decodeText(path, header);
  const value = parseObject(path, text);
  const repeated = repeatedKey(text);
  if (repeated !== null) throw invalid(path, `names ${JSON.stringify(repeated)} twice in its header`);
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
    throw invalid(path, 'has a header that is not UTF-8 text');
  }
}

function parseObject(path: string, text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(path, `has a header that is not JSON (${(error as Error).message.slice(0, 200)})`);
  }
  if (!isObject(value)) throw invalid(path, 'has a header that is no JSON object');
  return value;
}

function parseEntry(path: string, name: string, description: unknown): TensorEntry {
  const tensor = `tensor ${JSON.stringify(name)}`;
  if (!isObject(description)) throw invalid(path, `describes ${tensor} by something that is no object`);
  const { dtype, shape, data_offsets: offsets } = description;
  const elementBytes = typeof dtype === 'string' && Object.hasOwn(ELEMENT_BYTES, dtype) ? ELEMENT_BYTES[dtype]! : 0;
  if (elementBytes === 0) {
    const known = Object.keys(ELEMENT_BYTES).join(', ');
    throw invalid(path, `gives ${tensor} the type ${JSON.stringify(dtype)}; known are ${known}`);
  }
  if (!isCounts(shape)) throw invalid(path, `gives ${tensor} the shape ${JSON.stringify(shape)}`);
  if (!isCounts(offsets) || offsets.length !== 2) {
    throw invalid(path, `gives ${tensor} the byte range ${JSON.stringify(offsets)}; it must be [begin, end]`);
  }
  const [begin, end] = offsets as [number, number];
  const elements = shape.reduce((product, length) => product * length, 1);
  // Beyond 2^53 the product is not exact, but then no byte range is so long either.
  if (end - begin !== elements * elementBytes) {
    throw invalid(
      path,
      `gives ${tensor} ${end - begin} bytes; ${dtype} of the shape [${shape.join(', ')}] has ${elements * elementBytes}`,
    );
  }
  return { name, dtype: dtype as string, elementBytes, shape, elements, begin, end };
}

function checkRanges(path: string, entries: readonly TensorEntry[], dataBytes: number): void {
  let at = 0;
  for (const { name, begin, end } of entries.toSorted((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== at) {
      const how = begin < at ? 'overlaps the one before' : 'leaves a gap before it';
      throw invalid(
        path,
        `has a tensor ${JSON.stringify(name)} that begins at byte ${begin} where ${at} is due: it ${how}`,
      );
    }
    at = end;
  }
  if (at === dataBytes) return;
  throw invalid(
    path,
    dataBytes < at
      ? `has ${dataBytes} bytes of tensors; its header tells of ${at}: the file is cut off`
      : `has ${dataBytes} bytes of tensors; its header tells of ${at} only`,
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

function invalid(path: string, what: string): TrawlError {
  return new TrawlError('MODEL_INVALID', `${path} ${what}. Fetch or save the checkpoint again.`);
}
