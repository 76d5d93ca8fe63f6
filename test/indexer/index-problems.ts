import { verifyIndex } from '../../indexer/verify/verify-index.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';

/**
 * The problems of an index as sentences, checked without its model. Empty if there are none.
 *
 * @throws the errors of `openIndexDirectory` for files that are missing or have the wrong size.
 */
export async function indexProblems(folder: string): Promise<string[]> {
  openIndexDirectory(folder);
  const { problems } = await verifyIndex(folder);
  return problems.map(({ message }) => message);
}
