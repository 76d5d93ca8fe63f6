import { TrawlError } from '../../base/errors.ts';
import { collectionFiles, filesCollection, loadFiles } from '../milvus/collection-files.ts';
import { type MilvusAddress, shownAddress } from '../milvus/milvus-address.ts';
import type { MilvusClient } from '../milvus/milvus-client.ts';
import type { FieldSpec, FoundField } from '../milvus/milvus-facts.ts';
import { type Progress, type Publication, readProgress, readPublication } from '../published/publication.ts';

/** What a name in Milvus holds before a publication. */
interface HeldCollection {
  /** The fields of the collection; undefined if there is none. */
  readonly fields: readonly FoundField[] | undefined;
  readonly hasFiles: boolean;
  /** Of a finished publication. */
  readonly complete: Publication | undefined;
  /** Of an unfinished one that may have stored rows. */
  readonly progress: Progress | undefined;
}

/**
 * Finds what a name holds. Changes nothing but that a collection of files is loaded, without which it cannot be read.
 *
 * @param replicas copies of the files, if they have to be loaded.
 * @throws TrawlError INDEX_NOT_FOUND for a database that does not exist, INDEX_EXISTS for an alias or a collection of something else.
 */
export async function heldCollection(
  client: MilvusClient,
  address: MilvusAddress,
  replicas: number,
): Promise<HeldCollection> {
  const { collection } = address;
  const shown = shownAddress(address);
  const facts = await client.describe(collection);
  if (facts !== undefined && facts.name !== collection) {
    throw new TrawlError(
      'INDEX_EXISTS',
      `${shown}: ${collection} is an alias of ${facts.name}. Publish into a collection of another name, with --alias ${collection} to move the alias to it.`,
    );
  }
  const hasFiles = (await client.describe(filesCollection(collection))) !== undefined;
  if (facts === undefined) return { fields: undefined, hasFiles, complete: undefined, progress: undefined };
  if (!hasFiles) throw occupied(address, 'was not made by `trawl publish`');
  await loadFiles(client, collection, replicas);
  const complete = await readPublication(collectionFiles(client, collection));
  const progress = complete === undefined ? await readProgress(collectionFiles(client, collection)) : undefined;
  return { fields: facts.fields, hasFiles, complete, progress };
}

/**
 * @param index its fingerprint, and the index over the vectors that it is to have.
 * @throws TrawlError INDEX_EXISTS if the collection has rows of another index, or has another index over the vectors.
 */
export function checkSameIndex(
  { complete, progress }: HeldCollection,
  address: MilvusAddress,
  index: { readonly fingerprint: string; readonly indexType: string },
): void {
  const earlier = complete ?? progress;
  if (earlier === undefined) return;
  if (earlier.fingerprint !== index.fingerprint) throw occupied(address, 'is of another index');
  if (earlier.indexType !== index.indexType) {
    throw occupied(address, `was published with --index-type ${earlier.indexType}, not ${index.indexType},`);
  }
}

/** Milvus's names of the types. */
const TYPES: Readonly<Record<FieldSpec['type'], string>> = { int64: 'Int64', text: 'VarChar', vector: 'FloatVector' };

/**
 * Rows of an index fit no other fields. An unfinished publication of another index, killed before its first record, leaves such a
 * collection.
 *
 * @throws TrawlError INDEX_EXISTS if the collection has other fields than the index needs.
 */
export function checkFields({ fields }: HeldCollection, address: MilvusAddress, expected: readonly FieldSpec[]): void {
  if (fields === undefined) return;
  const text = (name: string, type: string, isKey: boolean, dimension: number | undefined): string =>
    `${name} (${type}${dimension === undefined ? '' : ` of ${dimension}`}${isKey ? ', key' : ''})`;
  const found = new Set(fields.map(({ name, type, isKey, dimension }) => text(name, type, isKey, dimension)));
  const wanted = new Set(
    expected.map(({ name, type, isKey = false, dimension }) => text(name, TYPES[type], isKey, dimension)),
  );
  const differences = [
    ...[...wanted].filter((field) => !found.has(field)).map((field) => `no ${field}`),
    ...[...found].filter((field) => !wanted.has(field)).map((field) => `the field ${field}`),
  ];
  if (differences.length > 0) {
    throw occupied(address, `has other fields than this index needs: ${differences.slice(0, 4).join(', ')};`);
  }
}

export function occupied(address: MilvusAddress, what: string): TrawlError {
  return new TrawlError(
    'INDEX_EXISTS',
    `${shownAddress(address)}: the collection ${what}. Publish into a collection of another name, or drop it and its files (${filesCollection(address.collection)}) first.`,
  );
}
