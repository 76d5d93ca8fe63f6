import { createHash } from 'node:crypto';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { type NumberedLine, readTextLines } from '../../base/files/read-text-lines.ts';
import type { FilterCache } from '../../engine/columns/filter-cache.ts';
import { type BoundFilter, bindFilter } from '../../engine/filter/bind-filter.ts';
import type { Column } from '../../engine/filter/column.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import { titleForms } from '../passages/document-fields.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import { filterOfView, type ViewDefinition } from './view-definition.ts';

/** The parts of an index that decide which rows are in a view. */
interface ViewedIndex {
  readonly index: string;
  readonly rows: number;
  readonly generation: string;
  readonly columns: readonly Column[];
  /** Absent if the index has no columns. */
  readonly filters: FilterCache | undefined;
  readonly passages: PassageStore;
  /** Rows that are not deleted; absent if no row is deleted. */
  readonly liveRows: RowBitmap | undefined;
}

interface OpenedViews {
  /** The rows of each view by its name. */
  readonly rows: ReadonlyMap<string, RowBitmap>;
  readonly infos: readonly { readonly name: string; readonly passages: number; readonly sha256: string }[];
}

/** Ids or titles that are looked up at once. */
const BATCH_ENTRIES = 10_000;

/**
 * Computes the rows of the views that the index has.
 *
 * @param onWarning is called with the entries of block lists that match no passage, and with views that hide nothing.
 * @throws TrawlError CONFIG_INVALID with the name of the view, if the index lacks its columns or has another generation, or if
 * entries of a block list match no passage and the view does not allow that;
 * CORPUS_BAD_LINE or CORPUS_NOT_FOUND with file and line of a list; NOT_SUPPORTED if the index cannot look ids or titles up.
 */
export async function openViews(
  definitions: readonly ViewDefinition[],
  index: ViewedIndex,
  onWarning: (message: string) => void,
): Promise<OpenedViews> {
  const rows = new Map<string, RowBitmap>();
  const infos: OpenedViews['infos'][number][] = [];
  for (const view of definitions) {
    if (view.indexes?.includes(index.index) === false) continue;
    const visible = await rowsOfView(view, index, (message) => onWarning(`view ${view.name}: ${message}`));
    const live = index.liveRows === undefined ? visible : visible.intersection(index.liveRows);
    rows.set(view.name, live);
    const sha256 = createHash('sha256').update(live.bytes).digest('hex');
    const passages = live.count();
    infos.push({ name: view.name, passages, sha256 });
    if (passages === (index.liveRows?.count() ?? index.rows))
      onWarning(`view ${view.name}: it hides no passage of ${index.index}`);
  }
  return { rows, infos };
}

async function rowsOfView(
  view: ViewDefinition,
  index: ViewedIndex,
  onWarning: (message: string) => void,
): Promise<RowBitmap> {
  checkGeneration(view, index);
  const filter = filterOfView(view);
  let visible = new RowBitmap(index.rows).complement();
  if (filter !== undefined) {
    // Refuses an index without columns.
    const bound = bindViewFilter(filter, view, index);
    visible = visible.intersection(await index.filters!.rows(bound));
  }
  if (view.rows !== undefined) visible = visible.intersection(await listedRows(view.rows, index));
  for (const [by, files] of [
    ['id', view.blockIds ?? []],
    ['title', view.blockTitles ?? []],
  ] as const) {
    for (const file of files) await block(visible, by, file, view, index, onWarning);
  }
  return visible;
}

function checkGeneration({ name, generation }: ViewDefinition, index: ViewedIndex): void {
  if (generation === undefined || generation === index.generation) return;
  throw new TrawlError(
    'CONFIG_INVALID',
    `The rows of the view ${name} belong to generation ${generation}, but the index ${index.index} has generation ` +
      `${index.generation}, whose rows may have other numbers. List the rows again.`,
  );
}

function bindViewFilter(filter: Filter, { name, date }: ViewDefinition, { columns, index }: ViewedIndex): BoundFilter {
  try {
    const bound = bindFilter(filter, columns, index);
    const type = columns.find((column) => column.name === date?.column)?.type ?? 'date';
    if (type === 'date') return bound;
    throw new TrawlError('CONFIG_INVALID', `The column ${JSON.stringify(date?.column)} is a ${type}, not a date.`);
  } catch (error) {
    const { message } = asTrawlError(error);
    throw new TrawlError('CONFIG_INVALID', `View ${name}: ${message}`, { cause: error });
  }
}

async function listedRows(file: string, { rows, index }: ViewedIndex): Promise<RowBitmap> {
  const listed = new RowBitmap(rows);
  for await (const { number, text } of readTextLines(file)) {
    const row = /^\d{1,15}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
    if (row < rows) listed.add(row);
    else {
      throw new TrawlError(
        'CORPUS_BAD_LINE',
        `${file}:${number}: found ${JSON.stringify(text.slice(0, 100))}, expected the number of a row from 0 to ${rows - 1} of the ` +
          `index ${index}.`,
        { details: { file, line: number } },
      );
    }
  }
  return listed;
}

/** Removes the rows of the entries of a block list. A list that hides nothing is a mistake, unless the view allows it. */
async function block(
  visible: RowBitmap,
  by: 'id' | 'title',
  file: string,
  view: ViewDefinition,
  { passages, rows, index }: ViewedIndex,
  onWarning: (message: string) => void,
): Promise<void> {
  const unmatched: NumberedLine[] = [];
  let count = 0;
  const remove = async (entries: readonly NumberedLine[]): Promise<void> => {
    count += entries.length;
    const forms = entries.map(({ text }) => (by === 'id' ? [text] : titleForms(text)));
    const found = await passages.find(by, forms.flat(), rows);
    let next = 0;
    for (const [i, { length }] of forms.entries()) {
      const blocked = found.slice(next, next + length).flat();
      next += length;
      for (const row of blocked) visible.delete(row);
      if (blocked.length === 0) unmatched.push(entries[i]!);
    }
  };
  let batch: NumberedLine[] = [];
  for await (const line of readTextLines(file)) {
    batch.push(line);
    if (batch.length < BATCH_ENTRIES) continue;
    await remove(batch);
    batch = [];
  }
  await remove(batch);
  const names = by === 'id' ? 'ids' : 'titles';
  const [first] = unmatched;
  if (first === undefined && count > 0) return;
  const found =
    first === undefined
      ? `${file} has no ${names}`
      : `${unmatched.length} of ${count} ${names} of ${file} match no passage of ${index}; the first is ` +
        `${JSON.stringify(first.text.slice(0, 100))} in line ${first.number}`;
  const isRefused = unmatched.length === count ? view.unmatched !== 'allow' : view.unmatched === 'refuse';
  if (!isRefused) return onWarning(found);
  const wayOut = 'Correct the list, name the indexes that the view is for in "indexes", or set "unmatched": "allow"';
  throw new TrawlError('CONFIG_INVALID', `View ${view.name}: ${found}. ${wayOut}.`, { details: { path: file } });
}
