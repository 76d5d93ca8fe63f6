// Which folders `npm run docs` may replace.
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** A file in every site that `npm run docs` made. */
export const SITE_MARKER = '.trawl-docs';

/** Why a folder must not be replaced by the site; undefined if it is missing, empty, or such a site. */
export function reasonToKeep(folder) {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (!found.isDirectory()) return `${folder} is not a folder. Name a new or empty folder with --out.`;
  const names = readdirSync(folder);
  if (names.length === 0 || lstatSync(join(folder, SITE_MARKER), { throwIfNoEntry: false })?.isFile()) return undefined;
  return `${folder} has files that npm run docs did not make (there is no ${SITE_MARKER}). Name a new or empty folder with --out, or empty this one.`;
}
