import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkSameIndex, heldCollection, occupied } from '../../publish/held-collection.ts';
import { PUBLISH_DEFAULTS } from '../../publish/publish-index.ts';
import { TrawlError } from '../../src/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../src/manifest/index-manifest.ts';
import { type MilvusAddress, parseMilvusAddress } from '../../src/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/milvus/milvus-client.ts';
import { fingerprintOf } from '../../src/published/publication.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';

/** Options of `trawl index` that do not go together with an address as --out, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  update: 'change the folder of --work (trawl index --update --out WORK), then publish it into a new collection',
  append: 'change the folder of --work (trawl index --append --out WORK), then publish it into a new collection',
  shard: 'build the jobs into a folder, merge them, then run trawl publish',
  'from-embeddings': 'build into a folder, then run trawl publish',
  bm25: 'an index in Milvus has no inverted indexes',
};

/**
 * The working folder of a build into Milvus. Asks Milvus first, so that a wrong host, password or database and a name that is taken do not
 * show only after hours.
 *
 * @throws TrawlError USAGE, CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED, INDEX_NOT_FOUND or INDEX_EXISTS.
 */
export async function workFolder(
  address: string,
  work: string | undefined,
  given: ReadonlySet<string>,
): Promise<string> {
  const parsed = parseMilvusAddress(address);
  if (work === undefined || work === '') {
    throw new TrawlError(
      'USAGE',
      '--work is missing: with an address in Milvus as --out, the folder in which the index is built before it is published, such as --work indexes/wiki18.',
    );
  }
  if (work.includes('://'))
    throw new TrawlError('USAGE', '--work is an address; expected a folder, such as --work indexes/wiki18.');
  for (const [name, instead] of Object.entries(REFUSED)) {
    if (given.has(name)) throw new TrawlError('USAGE', `--${name} does not work with an address as --out: ${instead}.`);
  }
  const client = await MilvusClient.connect(parsed);
  try {
    await checkName(client, parsed, given.has('overwrite') ? undefined : work);
  } finally {
    await client.close();
  }
  return work;
}

/** @param work an index that is published as it is, if it is complete; undefined if there is none. */
async function checkName(client: MilvusClient, address: MilvusAddress, work: string | undefined): Promise<void> {
  const held = await heldCollection(client, address);
  if (held.complete === undefined && held.progress === undefined) return;
  if (work === undefined || !existsSync(join(work, INDEX_MANIFEST_FILE))) {
    throw occupied(address, 'has rows of an index already, and --work has no complete one to compare with them');
  }
  const fingerprint = fingerprintOf(openIndexDirectory(work).manifest);
  checkSameIndex(held, address, { fingerprint, indexType: PUBLISH_DEFAULTS.indexType });
}
