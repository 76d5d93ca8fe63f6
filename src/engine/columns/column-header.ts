import { TrawlError } from '../../base/errors.ts';
import { COLUMN_TYPES } from '../filter/column.ts';
import {
  COLUMN_FIELDS,
  COLUMN_HEADER_BYTES,
  COLUMN_MAGIC,
  COLUMN_VERSION,
  type ColumnHeader,
  layOut,
  TYPE_CODES,
} from './column-format.ts';

/** The fields of 64 bits. */
const LONG_FIELDS = ['rows', 'values', 'distinct', 'starts', 'data', 'textStarts', 'texts', 'bytes'] as const;

export function columnHeaderBytes(header: ColumnHeader): Uint8Array {
  const bytes = Buffer.alloc(COLUMN_HEADER_BYTES);
  bytes.write(COLUMN_MAGIC, 0, 'latin1');
  bytes.writeUInt32LE(COLUMN_VERSION, COLUMN_FIELDS.version);
  bytes.writeUInt32LE(TYPE_CODES[header.type], COLUMN_FIELDS.type);
  bytes.writeUInt32LE(header.width, COLUMN_FIELDS.width);
  bytes.writeUInt32LE(Number(header.multiple), COLUMN_FIELDS.multiple);
  for (const name of LONG_FIELDS) {
    bytes.writeBigUInt64LE(BigInt(header[name]), COLUMN_FIELDS[name]);
  }
  return bytes;
}

/** @throws TrawlError INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED, naming the file. */
export function readColumnHeader(bytes: Buffer, path: string): ColumnHeader {
  if (bytes.length < COLUMN_HEADER_BYTES || bytes.toString('latin1', 0, 8) !== COLUMN_MAGIC) {
    throw foreignColumn(path, 'it is not a column file');
  }
  const version = bytes.readUInt32LE(COLUMN_FIELDS.version);
  if (version !== COLUMN_VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${path}: has version ${version}, but this program reads ${COLUMN_VERSION}. Update Trawl, or make the column again.`,
    );
  }
  const u32 = (name: 'type' | 'width' | 'multiple'): number => bytes.readUInt32LE(COLUMN_FIELDS[name]);
  const u64 = (name: (typeof LONG_FIELDS)[number]): number => Number(bytes.readBigUInt64LE(COLUMN_FIELDS[name]));
  const type = COLUMN_TYPES.find((known) => TYPE_CODES[known] === u32('type'));
  const width = ([1, 2, 4, 8] as const).find((known) => known === u32('width'));
  if (type === undefined || width === undefined || (width === 8) !== (type === 'number' || type === 'date')) {
    throw foreignColumn(path, 'its type or width is unknown');
  }
  const shape = { type, rows: u64('rows'), values: u64('values'), distinct: u64('distinct'), width };
  const header = layOut({ ...shape, multiple: u32('multiple') !== 0 }, u64('bytes') - u64('texts'));
  const same = (['starts', 'data', 'textStarts', 'texts', 'bytes'] as const).every(
    (name) => header[name] === u64(name),
  );
  if (!same || header.bytes !== bytes.length) throw foreignColumn(path, 'its size differs from its header');
  return header;
}

/** The error for a file that is damaged or not a column. */
export function foreignColumn(path: string, reason: string): TrawlError {
  return new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${path}: ${reason}. Copy it again, or make it again with trawl optimize.`,
  );
}
