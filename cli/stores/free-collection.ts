import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { parseMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/stores/milvus/milvus-client.ts';
import { checkSameIndex, heldCollection, occupied } from '../../src/stores/publish/held-collection.ts';
import { MILVUS_DEFAULTS } from '../../src/stores/publish/publish-milvus.ts';
import { fingerprintOf } from '../../src/stores/published/publication.ts';

/**
 * Asks Milvus before a build, so that a wrong host, password or database and a name that is taken do not show only after hours.
 *
 * @param work an index that is published as it is, if it is complete; undefined if there is none.
 * @throws TrawlError CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED, INDEX_NOT_FOUND or INDEX_EXISTS.
 */
export async function checkFreeCollection(place: string, work: string | undefined): Promise<void> {
  const address = parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  try {
    const held = await heldCollection(client, address, MILVUS_DEFAULTS.replicas);
    if (held.complete === undefined && held.progress === undefined) return;
    if (work === undefined || !existsSync(join(work, INDEX_MANIFEST_FILE))) {
      throw occupied(address, 'has rows of an index already, and --work has no complete one to compare with them');
    }
    const fingerprint = fingerprintOf(openIndexDirectory(work).manifest);
    checkSameIndex(held, address, { fingerprint, indexType: MILVUS_DEFAULTS.indexType });
  } finally {
    await client.close();
  }
}
