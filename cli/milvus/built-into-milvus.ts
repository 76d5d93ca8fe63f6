import { TrawlError } from '../../src/errors.ts';
import { parseMilvusAddress } from '../../src/milvus/milvus-address.ts';
import { MilvusClient } from '../../src/milvus/milvus-client.ts';

/** Options of `trawl index` that do not go together with an address as --out, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  update: 'change the folder of --work (trawl index --update --out WORK), then publish it into a new collection',
  append: 'change the folder of --work (trawl index --append --out WORK), then publish it into a new collection',
  shard: 'build the jobs into a folder, merge them, then run trawl publish',
  'from-embeddings': 'build into a folder, then run trawl publish',
  bm25: 'an index in Milvus has no inverted indexes',
};

/**
 * The working folder of a build into Milvus. Asks Milvus once, so that a wrong host or password does not show only after hours.
 *
 * @throws TrawlError USAGE, CONFIG_INVALID, PACKAGE_MISSING, STORE_FAILED or STORE_REFUSED.
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
  await (await MilvusClient.connect(parsed)).close();
  return work;
}
