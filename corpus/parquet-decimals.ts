import { type FileMetaData, parquetSchema } from 'hyparquet';
import { ExactNumber } from './json-text.ts';

type SchemaTree = ReturnType<typeof parquetSchema>;
type Convert = (value: unknown) => unknown;

/**
 * Takes the decimals out of hyparquet's hands, which makes float64 of them: ids of 20 digits would be rounded, and 0.3 would become
 * 0.30000000000000004. Changes the schema, so that their bytes are read as they are.
 *
 * @returns for each column what makes exact numbers of its decimals; undefined for a column without any.
 */
export function takeDecimals(metadata: FileMetaData): readonly (Convert | undefined)[] {
  return parquetSchema(metadata).children.map(converterOf);
}

function converterOf({ element, children }: SchemaTree): Convert | undefined {
  const { type, scale = 0, converted_type: converted, logical_type: logical } = element;
  const [first] = children;
  if (first === undefined) {
    const stated = logical?.type === 'DECIMAL' ? logical.scale : undefined;
    if (converted !== 'DECIMAL' && stated === undefined) return undefined;
    delete element.converted_type;
    delete element.logical_type;
    return each((value) => decimal(unscaled(value, type), stated ?? scale));
  }
  if (converted === 'LIST') return converterOf(first.children.length === 1 ? first.children[0]! : first);
  if (converted === 'MAP' || converted === 'MAP_KEY_VALUE') {
    const [, mapped] = first.children;
    const convert = mapped && converterOf(mapped);
    return convert && each((map) => mapMembers(map, () => convert));
  }
  const members = new Map(children.map((child) => [child.element.name, converterOf(child)]));
  if ([...members.values()].every((convert) => convert === undefined)) return undefined;
  return each((row) => mapMembers(row, (name) => members.get(name)));
}

/** A column may be a list, of lists too, and have nulls. */
function each(convert: Convert): Convert {
  const converted: Convert = (value) =>
    Array.isArray(value) ? value.map(converted) : value === null || value === undefined ? value : convert(value);
  return converted;
}

function mapMembers(value: unknown, convertOf: (name: string) => Convert | undefined): unknown {
  const members = Object.entries(value as object);
  return Object.fromEntries(members.map(([name, member]) => [name, (convertOf(name) ?? ((same) => same))(member)]));
}

/** The integer that a decimal is a power of ten of: two's complement, in bytes from the highest. */
function unscaled(value: unknown, type: string | undefined): bigint {
  if (typeof value === 'number' || typeof value === 'bigint') return BigInt(value);
  // Bytes that are UTF-8 have become a text.
  const bytes = type === 'BYTE_ARRAY' && typeof value === 'string' ? Buffer.from(value) : (value as Uint8Array);
  let digits = 0n;
  for (const byte of bytes) digits = digits * 256n + BigInt(byte);
  return BigInt.asIntN(8 * bytes.length, digits);
}

function decimal(value: bigint, scale: number): bigint | ExactNumber {
  const factor = 10n ** BigInt(scale);
  if (value % factor === 0n) return value / factor;
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  const text = `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/0+$/, '');
  return new ExactNumber(value < 0n ? `-${text}` : text);
}
