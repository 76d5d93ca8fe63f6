import { createHash } from 'node:crypto';
import { usageError } from '../../src/base/errors.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { readViews } from '../../src/index/views/read-views.ts';
import type { ViewDefinition } from '../../src/index/views/view-definition.ts';
import * as option from './option.ts';

/** The options of the commands that open one index. */
export const VIEW_OPTIONS = {
  views: option.text(
    'FILE',
    'File of views: named restrictions of an index, by filters, dates, and lists of rows, ids and titles (docs/views.md).',
  ),
  view: option.text(
    'NAME',
    'With --views: find only passages that are in this view, as a server with it does. Default: all passages.',
  ),
} as const;

export type ViewOptions = OptionValues<typeof VIEW_OPTIONS>;

/**
 * The view of `--view`, for the index that the command names, whatever the view's `indexes` are; undefined without the option.
 *
 * @throws TrawlError USAGE if one of the two options is missing, or for an unknown view; as `readViews`.
 */
export function viewOption({ views: file, view: name }: ViewOptions): ViewDefinition | undefined {
  if (file === undefined) {
    if (name === undefined) return undefined;
    throw usageError(`--view ${name} needs --views FILE, the file that defines it.`);
  }
  const views = readViews(file);
  if (name === undefined) {
    throw usageError(`--views has no effect without --view. ${file} has ${namesOf(views)}.`);
  }
  const { indexes: _, ...view } = namedView(views, name, `--view ${name}`, file);
  return view;
}

/** @param option names the view, for the message. @throws TrawlError USAGE for a view that the file does not have. */
export function namedView(
  views: readonly ViewDefinition[],
  name: string,
  option: string,
  file: string,
): ViewDefinition {
  const view = views.find((each) => each.name === name);
  if (view !== undefined) return view;
  throw usageError(`${option}: ${file} has no view ${JSON.stringify(name)}; it has ${namesOf(views)}.`);
}

function namesOf(views: readonly ViewDefinition[]): string {
  return views.map(({ name }) => name).join(', ');
}

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
