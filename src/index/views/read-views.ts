import { accessSync, constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import { readJsonSync } from '../../base/files/read-json.ts';
import { isObject, jsonExcerpt } from '../../base/objects.ts';
import { parseDate } from '../../engine/filter/date.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { filterOf } from '../../engine/filter/filter-json.ts';
import { type DateBound, isViewName, type ViewDefinition } from './view-definition.ts';

/**
 * Reads a file of views (docs/views.md): a JSON object with a view for each name. Paths in it are relative to its folder. The files of
 * rows, ids and titles must be readable; they are read when an index is opened.
 *
 * @throws TrawlError CONFIG_INVALID with the file, the place of the fault, and what is expected there.
 */
export function readViews(file: string): readonly ViewDefinition[] {
  const invalid = (reason: string, cause?: unknown): TrawlError =>
    new TrawlError('CONFIG_INVALID', `${file}: ${reason}.`, { details: { path: file }, cause });
  const json = readJsonSync(file, 'the file of views', invalid);
  if (!isObject(json) || Object.keys(json).length === 0) {
    throw invalid('expected an object with one view for each name, such as {"train": {"blockIds": "test-ids.txt"}}');
  }
  return Object.entries(json).map(([name, view]) => {
    const shown = JSON.stringify(name.slice(0, 100));
    if (!isViewName(name)) {
      throw invalid(
        `${shown} cannot be the name of a view; expected 1 to 64 letters, digits, dots, dashes and underscores`,
      );
    }
    return { name, ...readView(view, resolve(dirname(file)), (reason) => invalid(`view ${shown}: ${reason}`)) };
  });
}

const FIELDS = ['indexes', 'filter', 'date', 'rows', 'generation', 'blockIds', 'blockTitles', 'unmatched'] as const;
/** Fields that keep passages out of a view. */
const PARTS = ['filter', 'date', 'rows', 'blockIds', 'blockTitles'] as const;

function readView(
  json: unknown,
  folder: string,
  invalid: (reason: string) => TrawlError,
): Omit<ViewDefinition, 'name'> {
  const refuseOthers = (object: object, known: readonly string[], place: string): void => {
    const other = Object.keys(object).find((name) => !known.includes(name));
    if (other === undefined) return;
    throw invalid(`${place} has the field ${jsonExcerpt(other)}; expected ${known.join(', ')}`);
  };
  const readText = (place: string, value: unknown): string => {
    if (typeof value === 'string' && value !== '') return value;
    throw invalid(`${place}: found ${jsonExcerpt(value)}, expected a text`);
  };
  const readTexts = (place: string, value: unknown): readonly string[] => {
    if (!Array.isArray(value) || value.length === 0) {
      throw invalid(`${place}: found ${jsonExcerpt(value)}, expected a list of at least one name`);
    }
    return value.map((each) => readText(place, each));
  };
  const readFile = (place: string, value: unknown): string => {
    const path = resolve(folder, readText(place, value));
    try {
      accessSync(path, constants.R_OK);
    } catch (error) {
      throw invalid(`${place}: ${path} cannot be read (${(error as Error).message})`);
    }
    return path;
  };
  const readFiles = (place: string, value: unknown): readonly string[] => {
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (list.length === 0) throw invalid(`${place}: found an empty list, expected a file or a list of files`);
    return list.map((each) => readFile(place, each));
  };
  const readFilter = (place: string, value: unknown): Filter => {
    try {
      return filterOf(value);
    } catch (error) {
      if (!(error instanceof TrawlError)) throw error;
      throw invalid(`${place}: ${error.message.replace(/\.$/, '')}`);
    }
  };
  const readDate = (place: string, value: unknown): DateBound => {
    if (!isObject(value))
      throw invalid(`${place}: found ${jsonExcerpt(value)}, expected an object with column, before and undated`);
    refuseOthers(value, ['column', 'before', 'undated'], place);
    const column = readText(`${place}.column`, value.column);
    const before = readText(`${place}.before`, value.before);
    if (parseDate(before) === undefined) {
      throw invalid(`${place}.before: found ${jsonExcerpt(before)}, expected a date such as 2023-10-01`);
    }
    const { undated } = value;
    if (undated === 'keep' || undated === 'drop') return { column, before, undated };
    const meaning = 'whether passages without a date are in the view';
    throw invalid(`${place}.undated: found ${jsonExcerpt(undated)}, expected "keep" or "drop": ${meaning}`);
  };
  const readUnmatched = (place: string, value: unknown): 'refuse' | 'allow' => {
    if (value === 'refuse' || value === 'allow') return value;
    const meaning = 'whether the index opens although entries of a block list match no passage';
    throw invalid(`${place}: found ${jsonExcerpt(value)}, expected "refuse" or "allow": ${meaning}`);
  };

  if (!isObject(json)) throw invalid(`found ${jsonExcerpt(json)}, expected an object`);
  refuseOthers(json, FIELDS, 'the view');
  if (PARTS.every((part) => json[part] === undefined)) {
    throw invalid(`it has all passages; expected at least one of ${PARTS.join(', ')}`);
  }
  if ((json.rows === undefined) !== (json.generation === undefined)) {
    throw invalid(
      'rows and generation belong together: row numbers change with the index, so expected the generation that they are of (trawl inspect INDEX)',
    );
  }
  const read = <T>(name: (typeof FIELDS)[number], reader: (place: string, value: unknown) => T): T | undefined =>
    json[name] === undefined ? undefined : reader(name, json[name]);
  return {
    indexes: read('indexes', readTexts),
    filter: read('filter', readFilter),
    date: read('date', readDate),
    rows: read('rows', readFile),
    generation: read('generation', readText),
    blockIds: read('blockIds', readFiles),
    blockTitles: read('blockTitles', readFiles),
    unmatched: read('unmatched', readUnmatched),
  };
}
