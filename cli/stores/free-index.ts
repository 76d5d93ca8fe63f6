import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { parseOpenSearchAddress } from '../../src/stores/opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../../src/stores/opensearch/opensearch-client.ts';
import { checkSameIndex, heldIndex, occupied } from '../../src/stores/publish/held-index.ts';
import { fingerprintOf } from '../../src/stores/published/publication.ts';

/**
 * Asks OpenSearch before a build, so that a wrong host or password and a name that is taken do not show only after hours.
 *
 * @param work an index that is published as it is, if it is complete; undefined if there is none.
 * @throws TrawlError CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED or INDEX_EXISTS.
 */
export async function checkFreeIndex(place: string, work: string | undefined): Promise<void> {
  const address = parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  try {
    const held = await heldIndex(client, address);
    if (held.complete === undefined && held.progress === undefined) return;
    if (work === undefined || !existsSync(join(work, INDEX_MANIFEST_FILE)))
      throw occupied(address, 'has rows of an index already, and --work has no complete one to compare with them');
    const { manifest } = openIndexDirectory(work);
    checkSameIndex(held, address, { fingerprint: fingerprintOf(manifest), words: manifest.bm25?.made });
  } finally {
    await client.close();
  }
}
