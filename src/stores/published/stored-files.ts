import { hash } from 'node:crypto';
import Type from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { Count, Sha256 } from '../../index/manifest/schemas.ts';

export interface StoredPart {
  readonly place: number;
  readonly bytes: Buffer;
}

/**
 * Where a published index keeps files beside its rows: the record of the publication, its progress, and files of the index. Their bytes
 * are in numbered parts.
 */
export interface PartStore {
  /** For messages: `the collection wiki_trawl of Milvus at HOST:PORT`. */
  readonly place: string;
  /** Replaces parts with the same numbers. */
  write(parts: readonly StoredPart[]): Promise<void>;
  /** The parts of [first, end) that exist, in no order, including everything that was written before. */
  read(first: number, end: number): Promise<readonly StoredPart[]>;
}

/** As base64, a part has 64,000 characters; Milvus's limit of a text is 65,535. */
const BYTES_A_PART = 48_000;
const PARTS_A_CALL = 12;

/** First parts of the files with fixed places. */
export const PUBLICATION_PART = 0;
export const PROGRESS_PART = 100_000;
export const FIRST_FILE_PART = 200_000;

export const StoredFile = Type.Object({ firstPart: Count, parts: Count, bytes: Count, sha256: Sha256 });
export type StoredFile = Type.Static<typeof StoredFile>;

export async function writeFile(store: PartStore, firstPart: number, content: Uint8Array): Promise<StoredFile> {
  const parts = Math.ceil(content.length / BYTES_A_PART);
  for (let part = 0; part < parts; part += PARTS_A_CALL) {
    const written = Array.from({ length: Math.min(PARTS_A_CALL, parts - part) }, (_, i) => {
      const at = (part + i) * BYTES_A_PART;
      const bytes = Buffer.from(content.buffer, content.byteOffset, content.length).subarray(at, at + BYTES_A_PART);
      return { place: firstPart + part + i, bytes };
    });
    await store.write(written);
  }
  return { firstPart, parts, bytes: content.length, sha256: hash('sha256', content) };
}

/** @throws TrawlError STORE_DIFFERS if parts are missing or the checksum differs. */
export async function readFile(store: PartStore, file: StoredFile): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  const last = file.firstPart + file.parts;
  for (let first = file.firstPart; first < last; first += PARTS_A_CALL)
    pieces.push(await readParts(store, first, Math.min(last, first + PARTS_A_CALL)));
  const content = Buffer.concat(pieces);
  const found = hash('sha256', content);
  if (found === file.sha256) return content;
  throw new TrawlError(
    'STORE_DIFFERS',
    `A file in ${store.place} has the checksum ${found}, expected ${file.sha256}. Publish the index again, under another name.`,
  );
}

/** Writes JSON at a fixed place, with its checksum before it: it is read whole or not at all. */
export async function writeRecord(store: PartStore, firstPart: number, record: unknown): Promise<void> {
  const json = Buffer.from(JSON.stringify(record));
  const head = Buffer.from(`${JSON.stringify({ bytes: json.length, sha256: hash('sha256', json) })}\n`);
  await writeFile(store, firstPart, Buffer.concat([head, json]));
}

/** The record at a fixed place; undefined if there is none, or an incomplete one. */
export async function readRecord(store: PartStore, firstPart: number): Promise<unknown> {
  const content = await readParts(store, firstPart, firstPart + PROGRESS_PART);
  const end = content.indexOf('\n');
  if (end < 0) return undefined;
  const { bytes, sha256 } = JSON.parse(content.toString('utf8', 0, end)) as { bytes: number; sha256: string };
  // Parts of a longer, earlier record may follow.
  const json = content.subarray(end + 1, end + 1 + bytes);
  return hash('sha256', json) === sha256 ? JSON.parse(json.toString()) : undefined;
}

async function readParts(store: PartStore, first: number, end: number): Promise<Buffer> {
  const parts = [...(await store.read(first, end))].sort((a, b) => a.place - b.place);
  return Buffer.concat(parts.map(({ bytes }) => bytes));
}
