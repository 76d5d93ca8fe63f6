import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import type { WorkOptions } from './build-options.ts';

/**
 * Checks that no input of a build is in a folder that the build removes: the replaced index and `<out>.partial`.
 *
 * @throws TrawlError USAGE with the file.
 */
export function checkInputsOutside({ out, corpus, corpusOptions, vectors }: WorkOptions): void {
  const final = resolve(out);
  // If `out` is a link to an index, only the link is replaced, so do not follow it.
  const place = join(realOrItself(dirname(final)), basename(final));
  const folders = [`${place}.partial`];
  // A folder that is not an index is never replaced.
  if (existsSync(join(place, INDEX_MANIFEST_FILE))) folders.push(place);
  const inputs = [...listCorpusFiles(corpus, corpusOptions.format), ...(vectors?.set.files ?? [])];
  for (const { path } of inputs) {
    const file = realOrItself(resolve(path));
    const folder = folders.find((each) => file.startsWith(each + sep));
    if (folder === undefined) continue;
    throw new TrawlError(
      'USAGE',
      `${path} is an input of this build, but the build removes ${folder}. Choose another --out, or move the file.`,
      { details: { path, folder } },
    );
  }
}

function realOrItself(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
