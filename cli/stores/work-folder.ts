import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { usageError } from '../../src/base/errors.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { isMilvusAddress, parseMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { collectionPlace, loadFiles } from '../../src/stores/milvus/open-published-index.ts';
import { indexPlace } from '../../src/stores/opensearch/open-published-index.ts';
import { parseOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { checkSameCollection, MILVUS_DEFAULTS } from '../../src/stores/publish/publish-milvus.ts';
import { checkSameWords } from '../../src/stores/publish/publish-opensearch.ts';
import { heldPlace, occupiedPlace } from '../../src/stores/published/find-publication.ts';
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

const OCCUPIED = 'has rows of an index already, and --work has no complete one to compare with them';

/** `work`: an index that is published as it is, if it is complete; undefined if there is none. */
async function checkFreeCollection(place: string, work: string | undefined): Promise<void> {
  const address = parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  try {
    const found = collectionPlace(client, address);
    const held = await heldPlace(found, () => loadFiles(client, address.collection, MILVUS_DEFAULTS.replicas));
    if (held.complete === undefined && held.progress === undefined) return;
    const manifest = completeManifest(work);
    if (manifest === undefined) throw occupiedPlace(found, OCCUPIED);
    const { indexType } = MILVUS_DEFAULTS;
    checkSameCollection(held, found, { fingerprint: fingerprintOf(manifest), indexType });
  } finally {
    await client.close();
  }
}

async function checkFreeIndex(place: string, work: string | undefined): Promise<void> {
  const address = parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  try {
    const found = indexPlace(client, address);
    const held = await heldPlace(found);
    if (held.complete === undefined && held.progress === undefined) return;
    const manifest = completeManifest(work);
    if (manifest === undefined) throw occupiedPlace(found, OCCUPIED);
    checkSameWords(held, found, { fingerprint: fingerprintOf(manifest), words: manifest.bm25?.made });
  } finally {
    await client.close();
  }
}

function completeManifest(work: string | undefined): IndexManifest | undefined {
  if (work === undefined || !existsSync(join(work, INDEX_MANIFEST_FILE))) return undefined;
  return openIndexDirectory(work).manifest;
}
