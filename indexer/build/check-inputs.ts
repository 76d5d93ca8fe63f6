import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { TrawlError } from '../../src/errors.ts';
import { INDEX_MANIFEST_FILE } from '../../src/manifest/index-manifest.ts';
import type { BuildOptions } from './build-options.ts';

/**
 * What a build reads may not lie where it writes: with the index that it replaces, and with what it began before, everything in
 * these folders goes.
 *
 * @throws TrawlError USAGE naming the file.
 */
export function checkInputsOutside({ out, corpus, corpusOptions, vectors }: BuildOptions): void {
  const final = resolve(out);
  // Of an index behind a link only the link is replaced, so the last name is not followed.
  const place = join(realOrItself(dirname(final)), basename(final));
  const folders = [`${place}.partial`, `${place}.replaced`];
  // What is no index is never replaced.
  if (existsSync(join(place, INDEX_MANIFEST_FILE))) folders.push(place);
  const inputs = [...listCorpusFiles(corpus, corpusOptions.format), ...(vectors?.set.files ?? [])];
  for (const { path } of inputs) {
    const file = realOrItself(resolve(path));
    const folder = folders.find((each) => file.startsWith(each + sep));
    if (folder === undefined) continue;
    throw new TrawlError(
      'USAGE',
      `${path} is read by this build and lies in ${folder}, which goes when the index takes its place. Choose another ` +
        '--out, or move the file.',
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
