import { createHash } from 'node:crypto';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { readTextLines } from '../../base/files/read-text-lines.ts';
import type { FilterCache } from '../../engine/columns/filter-cache.ts';
import { bindFilter } from '../../engine/filter/bind-filter.ts';
import type { Column } from '../../engine/filter/column.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import { titleForms } from '../passages/title-forms.ts';
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
 * @param onWarning is called with the entries of block lists that match no passage.
 * @throws TrawlError CONFIG_INVALID with the name of the view, if the index lacks its columns or has another generation;
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
    const kept = await rowsOfView(view, index, (message) => onWarning(`view ${view.name}: ${message}`));
    const live = index.liveRows === undefined ? kept : kept.intersection(index.liveRows);
    rows.set(view.name, live);
    const sha256 = createHash('sha256').update(live.bytes).digest('hex');
    infos.push({ name: view.name, passages: live.count(), sha256 });
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
  let kept = new RowBitmap(index.rows).complement();
  if (filter !== undefined) {
    const bound = boundFilter(view, index);
    kept = kept.intersection(await index.filters!.rows(bound));
  }
  if (view.rows !== undefined) kept = kept.intersection(await listedRows(view.rows, index));
  for (const [by, files] of [
    ['id', view.blockIds ?? []],
    ['title', view.blockTitles ?? []],
  ] as const) {
    for (const file of files) await block(kept, by, file, index, onWarning);
  }
  return kept;
}

function checkGeneration({ name, generation }: ViewDefinition, index: ViewedIndex): void {
  if (generation === undefined || generation === index.generation) return;
  throw new TrawlError(
    'CONFIG_INVALID',
    `The rows of the view ${name} belong to generation ${generation}, but the index ${index.index} has generation ` +
      `${index.generation}, whose rows may have other numbers. List the rows again.`,
  );
}

function boundFilter(view: ViewDefinition, { columns, index }: ViewedIndex): ReturnType<typeof bindFilter> {
  const filter = filterOfView(view)!;
  try {
    const bound = bindFilter(filter, columns, index);
    if (view.date === undefined) return bound;
    const { column } = view.date;
    const type = columns.find(({ name }) => name === column)?.type;
    if (type === 'date') return bound;
    throw new TrawlError('CONFIG_INVALID', `The column ${JSON.stringify(column)} is a ${type}, not a date.`);
  } catch (error) {
    const { message } = asTrawlError(error);
    throw new TrawlError('CONFIG_INVALID', `View ${view.name}: ${message}`, { cause: error });
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

interface Entry {
  readonly text: string;
  readonly line: number;
}

/** Removes the rows of the entries of a block list. */
async function block(
  kept: RowBitmap,
  by: 'id' | 'title',
  file: string,
  { passages, rows, index }: ViewedIndex,
  onWarning: (message: string) => void,
): Promise<void> {
  const unmatched: Entry[] = [];
  let count = 0;
  const remove = async (entries: readonly Entry[]): Promise<void> => {
    count += entries.length;
    const forms = entries.map(({ text }) => (by === 'id' ? [text] : titleForms(text)));
    const found = await passages.find(by, forms.flat(), rows);
    let next = 0;
    for (const [i, { length }] of forms.entries()) {
      const blocked = found.slice(next, next + length).flat();
      next += length;
      for (const row of blocked) kept.delete(row);
      if (blocked.length === 0) unmatched.push(entries[i]!);
    }
  };
  let batch: Entry[] = [];
  for await (const { number, text } of readTextLines(file)) {
    batch.push({ text, line: number });
    if (batch.length < BATCH_ENTRIES) continue;
    await remove(batch);
    batch = [];
  }
  await remove(batch);
  const [first] = unmatched;
  if (first === undefined) return;
  onWarning(
    `${unmatched.length} of ${count} ${by === 'id' ? 'ids' : 'titles'} of ${file} match no passage of ${index}; the first is ` +
      `${JSON.stringify(first.text.slice(0, 100))} in line ${first.line}`,
  );
}
