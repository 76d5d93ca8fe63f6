import { TrawlError } from '../../src/base/errors.ts';
import { isMilvusAddress } from '../../src/stores/milvus/milvus-address.ts';
import { parsePublishedAddress } from '../../src/stores/published/published-address.ts';
import { checkFreeCollection } from './free-collection.ts';
import { checkFreeIndex } from './free-index.ts';

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
    throw new TrawlError(
      'USAGE',
      `--work is missing: with an address in ${store} as --out, the folder in which the index is built before it is published, such as --work indexes/wiki18.`,
    );
  }
  if (work.includes('://'))
    throw new TrawlError('USAGE', '--work is an address; expected a folder, such as --work indexes/wiki18.');
  for (const [name, instead] of Object.entries(isMilvusAddress(address) ? REFUSED_BY_MILVUS : REFUSED)) {
    if (given.has(name)) throw new TrawlError('USAGE', `--${name} does not work with an address as --out: ${instead}.`);
  }
  if (given.has('bm25') && !given.has('model')) {
    throw new TrawlError(
      'USAGE',
      `--bm25 without --model builds an index without vectors, which ${store} cannot have. Add --model.`,
    );
  }
  const complete = given.has('overwrite') ? undefined : work;
  await (isMilvusAddress(address) ? checkFreeCollection(address, complete) : checkFreeIndex(address, complete));
  return work;
}
