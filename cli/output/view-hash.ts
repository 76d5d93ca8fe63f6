import { createHash } from 'node:crypto';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { ViewDefinition } from '../../src/index/views/view-definition.ts';
import { type ViewOptions, viewOption } from '../options/view-options.ts';

/** A hash of the view of `--view` and of the files that it names; null without a view. @throws as `viewOption`. */
export async function viewHash(options: ViewOptions): Promise<string | null> {
  const view = viewOption(options);
  if (view === undefined) return null;
  const hashes = await Promise.all(viewFiles(view).map((file) => sha256OfFile(file)));
  return createHash('sha256')
    .update(JSON.stringify([view, hashes]))
    .digest('hex');
}

/** The files that a view names. */
export function viewFiles(view: ViewDefinition | undefined): string[] {
  const { rows, blockIds = [], blockTitles = [] } = view ?? {};
  return [...(rows === undefined ? [] : [rows]), ...blockIds, ...blockTitles];
}
