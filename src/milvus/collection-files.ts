import { createHash } from 'node:crypto';
import { TrawlError } from '../errors.ts';
import type { MilvusClient } from './milvus-client.ts';

/**
 * Files in a collection of their own beside the rows: the record of the publication, its progress, and files of the index. Their bytes
 * are base64 texts in numbered parts. Milvus demands a vector field; it has no meaning.
 */
const BYTES_A_PART = 48 * 1024;
const PARTS_A_CALL = 12;
const PART_FIELD = 'part';
const BYTES_FIELD = 'bytes';
const UNUSED_FIELD = 'unused';

/** First parts of the files with fixed places. */
export const PUBLICATION_PART = 0;
export const PROGRESS_PART = 100_000;
export const FIRST_FILE_PART = 200_000;

export interface StoredFile {
  readonly firstPart: number;
  readonly parts: number;
  readonly bytes: number;
  readonly sha256: string;
}

export function filesCollection(collection: string): string {
  return `${collection}_trawl`;
}

/** Creates and loads the collection of files. */
export async function createFiles(client: MilvusClient, collection: string): Promise<void> {
  const name = filesCollection(collection);
  await client.create(name, {
    description: `Trawl: record and files of the index in ${collection}`,
    fields: [
      { name: PART_FIELD, type: 'int64', isKey: true },
      { name: BYTES_FIELD, type: 'text' },
      { name: UNUSED_FIELD, type: 'vector', dimension: 2 },
    ],
  });
  await loadFiles(client, collection);
}

/** Indexes and loads the collection, which may have been left without either by a killed publication. */
export async function loadFiles(client: MilvusClient, collection: string): Promise<void> {
  const name = filesCollection(collection);
  await client.createIndex(name, UNUSED_FIELD, { type: 'FLAT', metric: 'L2' });
  await client.load(name, 1);
}

export async function writeFile(
  client: MilvusClient,
  collection: string,
  firstPart: number,
  content: Uint8Array,
): Promise<StoredFile> {
  const parts = Math.ceil(content.length / BYTES_A_PART);
  for (let part = 0; part < parts; part += PARTS_A_CALL) {
    const entities = Array.from({ length: Math.min(PARTS_A_CALL, parts - part) }, (_, i) => {
      const at = (part + i) * BYTES_A_PART;
      const bytes = Buffer.from(content.buffer, content.byteOffset, content.length).subarray(at, at + BYTES_A_PART);
      return { [PART_FIELD]: firstPart + part + i, [BYTES_FIELD]: bytes.toString('base64'), [UNUSED_FIELD]: [0, 0] };
    });
    await client.upsert(filesCollection(collection), entities);
  }
  return { firstPart, parts, bytes: content.length, sha256: sha256Of(content) };
}

/** @throws TrawlError STORE_DIFFERS if parts are missing or the checksum differs. */
export async function readFile(client: MilvusClient, collection: string, file: StoredFile): Promise<Uint8Array> {
  const content = Buffer.alloc(file.bytes);
  for (let part = 0; part < file.parts; part += PARTS_A_CALL) {
    const end = Math.min(file.parts, part + PARTS_A_CALL);
    for (const { place, bytes } of await readParts(client, collection, file.firstPart + part, file.firstPart + end)) {
      bytes.copy(content, (place - file.firstPart) * BYTES_A_PART);
    }
  }
  const found = sha256Of(content);
  if (found === file.sha256) return content;
  throw new TrawlError(
    'STORE_DIFFERS',
    `A file in the collection ${filesCollection(collection)} of Milvus at ${client.server} has the checksum ${found}, expected ${file.sha256}. Publish the index again, into another collection.`,
  );
}

/** Writes JSON at a fixed place, with its checksum before it: it is read whole or not at all. */
export async function writeRecord(
  client: MilvusClient,
  collection: string,
  firstPart: number,
  record: unknown,
): Promise<void> {
  const json = Buffer.from(JSON.stringify(record));
  const head = Buffer.from(`${JSON.stringify({ bytes: json.length, sha256: sha256Of(json) })}\n`);
  await writeFile(client, collection, firstPart, Buffer.concat([head, json]));
}

/** The record at a fixed place; undefined if there is none, or an incomplete one. */
export async function readRecord(client: MilvusClient, collection: string, firstPart: number): Promise<unknown> {
  const parts = await readParts(client, collection, firstPart, firstPart + PROGRESS_PART);
  const content = Buffer.concat(parts.sort((a, b) => a.place - b.place).map(({ bytes }) => bytes));
  const end = content.indexOf('\n');
  if (end < 0) return undefined;
  const { bytes, sha256 } = JSON.parse(content.toString('utf8', 0, end)) as { bytes: number; sha256: string };
  // Parts of a longer, earlier record may follow.
  const json = content.subarray(end + 1, end + 1 + bytes);
  return sha256Of(json) === sha256 ? JSON.parse(json.toString()) : undefined;
}

async function readParts(
  client: MilvusClient,
  collection: string,
  first: number,
  end: number,
): Promise<{ place: number; bytes: Buffer }[]> {
  const found = await client.query(filesCollection(collection), {
    filter: `${PART_FIELD} >= ${first} and ${PART_FIELD} < ${end}`,
    fields: [PART_FIELD, BYTES_FIELD],
    consistency: 'Strong',
  });
  return found.map((entity) => ({
    place: Number(entity[PART_FIELD]),
    bytes: Buffer.from(String(entity[BYTES_FIELD]), 'base64'),
  }));
}

function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
