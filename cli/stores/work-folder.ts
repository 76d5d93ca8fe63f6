import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { usageError } from '../../src/base/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { isMilvusAddress, parseMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { parseOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import * as collections from '../../src/stores/publish/held-collection.ts';
import * as indexes from '../../src/stores/publish/held-index.ts';
import { MILVUS_DEFAULTS } from '../../src/stores/publish/publish-milvus.ts';
import { fingerprintOf } from '../../src/stores/published/publication.ts';
import { parsePublishedAddress } from '../../src/stores/published/published-address.ts';

/** Options of `trawl index` that do not go together with an address as --out, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  update: 'change the folder of --work (trawl index --update --out WORK), then publish it under a new name',
  append: 'change the folder of --work (trawl index --append --out WORK), then publish it under a new name',
  shard: 'build the jobs into a folder, merge them, then run trawl publish',
  'from-embeddings': 'build into a folder, then run trawl publish',
};
const REFUSED_BY_MILVUS: Readonly<Record<string, string>> = {
  ...REFUSED,
  bm25: 'an index in Milvus has no inverted indexes',
};

/**
 * The working folder of a build into a store. The store is asked first, so that what is wrong with the address does not show only after hours.
 *
 * @throws TrawlError USAGE, CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED, INDEX_NOT_FOUND or INDEX_EXISTS.
 */
export async function workFolder(
  address: string,
  work: string | undefined,
  given: ReadonlySet<string>,
): Promise<string> {
  const { store } = parsePublishedAddress(address);
  if (work === undefined || work === '') {
    throw usageError(
      `--work is missing: with an address in ${store} as --out, the folder in which the index is built before it is published, such as --work indexes/wiki18.`,
    );
  }
  if (work.includes('://')) throw usageError('--work is an address; expected a folder, such as --work indexes/wiki18.');
  for (const [name, instead] of Object.entries(isMilvusAddress(address) ? REFUSED_BY_MILVUS : REFUSED)) {
    if (given.has(name)) throw usageError(`--${name} does not work with an address as --out: ${instead}.`);
  }
  if (given.has('bm25') && !given.has('model')) {
    throw usageError(
      `--bm25 without --model builds an index without vectors, which ${store} cannot have. Add --model.`,
    );
  }
  const complete = given.has('overwrite') ? undefined : work;
  await (isMilvusAddress(address) ? checkFreeCollection(address, complete) : checkFreeIndex(address, complete));
  return work;
}

/**
 * Asks Milvus before a build, so that a wrong host, password or database and a name that is taken do not show only after hours.
 *
 * @param work an index that is published as it is, if it is complete; undefined if there is none.
 * @throws TrawlError CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED, INDEX_NOT_FOUND or INDEX_EXISTS.
 */
async function checkFreeCollection(place: string, work: string | undefined): Promise<void> {
  const address = parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  try {
    const held = await collections.heldCollection(client, address, MILVUS_DEFAULTS.replicas);
    if (held.complete === undefined && held.progress === undefined) return;
    if (work === undefined || !existsSync(join(work, INDEX_MANIFEST_FILE))) {
      throw collections.occupied(
        address,
        'has rows of an index already, and --work has no complete one to compare with them',
      );
    }
    const fingerprint = fingerprintOf(openIndexDirectory(work).manifest);
    collections.checkSameIndex(held, address, { fingerprint, indexType: MILVUS_DEFAULTS.indexType });
  } finally {
    await client.close();
  }
}

/**
 * Asks OpenSearch before a build, so that a wrong host or password and a name that is taken do not show only after hours.
 *
 * @param work an index that is published as it is, if it is complete; undefined if there is none.
 * @throws TrawlError CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED or INDEX_EXISTS.
 */
async function checkFreeIndex(place: string, work: string | undefined): Promise<void> {
  const address = parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  try {
    const held = await indexes.heldIndex(client, address);
    if (held.complete === undefined && held.progress === undefined) return;
    if (work === undefined || !existsSync(join(work, INDEX_MANIFEST_FILE)))
      throw indexes.occupied(
        address,
        'has rows of an index already, and --work has no complete one to compare with them',
      );
    const { manifest } = openIndexDirectory(work);
    indexes.checkSameIndex(held, address, { fingerprint: fingerprintOf(manifest), words: manifest.bm25?.made });
  } finally {
    await client.close();
  }
}
