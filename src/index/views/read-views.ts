import { accessSync, constants, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import { isObject, jsonExcerpt } from '../../base/objects.ts';
import { parseDate } from '../../engine/filter/date.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { filterOf } from '../../engine/filter/filter-json.ts';
import { type DateBound, isViewName, type ViewDefinition } from './view-definition.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Reads a file of views (docs/views.md): a JSON object with a view for each name. Paths in it are relative to its folder. The files of
 * rows, ids and titles must be readable; they are read when an index is opened.
 *
 * @throws TrawlError CONFIG_INVALID with the file, the place of the fault, and what is expected there.
 */
export function readViews(file: string): readonly ViewDefinition[] {
  const invalid = (reason: string, cause?: unknown): TrawlError =>
    new TrawlError('CONFIG_INVALID', `${file}: ${reason}.`, { details: { path: file }, cause });
  const json = parseJson(file, invalid);
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
    const reader = new ViewReader(resolve(dirname(file)), (reason) => invalid(`view ${shown}: ${reason}`));
    return { name, ...reader.read(view) };
  });
}

const FIELDS = ['indexes', 'filter', 'date', 'rows', 'generation', 'blockIds', 'blockTitles'] as const;
/** Fields that keep passages out of a view. */
const PARTS = ['filter', 'date', 'rows', 'blockIds', 'blockTitles'] as const;

class ViewReader {
  readonly #folder: string;
  readonly #invalid: (reason: string) => TrawlError;

  constructor(folder: string, invalid: (reason: string) => TrawlError) {
    this.#folder = folder;
    this.#invalid = invalid;
  }

  read(json: unknown): Omit<ViewDefinition, 'name'> {
    if (!isObject(json)) throw this.#invalid(`found ${jsonExcerpt(json)}, expected an object`);
    this.#refuseOthers(json, FIELDS, 'the view');
    if (PARTS.every((part) => json[part] === undefined)) {
      throw this.#invalid(`it has all passages; expected at least one of ${PARTS.join(', ')}`);
    }
    const { indexes, filter, date, rows, generation, blockIds, blockTitles } = json;
    if ((rows === undefined) !== (generation === undefined)) {
      throw this.#invalid(
        'rows and generation belong together: row numbers change with the index, so expected the generation that they are of (trawl inspect INDEX)',
      );
    }
    return {
      indexes: indexes === undefined ? undefined : this.#texts('indexes', indexes),
      filter: filter === undefined ? undefined : this.#filter(filter),
      date: date === undefined ? undefined : this.#date(date),
      rows: rows === undefined ? undefined : this.#file('rows', rows),
      generation: generation === undefined ? undefined : this.#text('generation', generation),
      blockIds: blockIds === undefined ? undefined : this.#files('blockIds', blockIds),
      blockTitles: blockTitles === undefined ? undefined : this.#files('blockTitles', blockTitles),
    };
  }

  #filter(json: unknown): Filter {
    try {
      return filterOf(json);
    } catch (error) {
      if (!(error instanceof TrawlError)) throw error;
      throw this.#invalid(`filter: ${error.message.replace(/\.$/, '')}`);
    }
  }

  #date(json: unknown): DateBound {
    if (!isObject(json))
      throw this.#invalid(`date: found ${jsonExcerpt(json)}, expected an object with column, before and undated`);
    this.#refuseOthers(json, ['column', 'before', 'undated'], 'date');
    const column = this.#text('date.column', json.column);
    const before = this.#text('date.before', json.before);
    if (parseDate(before) === undefined) {
      throw this.#invalid(`date.before: found ${jsonExcerpt(before)}, expected a date such as 2023-10-01`);
    }
    const { undated } = json;
    if (undated !== 'keep' && undated !== 'drop') {
      throw this.#invalid(
        `date.undated: found ${jsonExcerpt(undated)}, expected "keep" or "drop": whether passages without a date are in the view`,
      );
    }
    return { column, before, undated };
  }

  #files(place: string, json: unknown): readonly string[] {
    const list: readonly unknown[] = Array.isArray(json) ? json : [json];
    if (list.length === 0) throw this.#invalid(`${place}: found an empty list, expected a file or a list of files`);
    return list.map((each) => this.#file(place, each));
  }

  #file(place: string, json: unknown): string {
    const path = resolve(this.#folder, this.#text(place, json));
    try {
      accessSync(path, constants.R_OK);
    } catch (error) {
      throw this.#invalid(`${place}: ${path} cannot be read (${(error as Error).message})`);
    }
    return path;
  }

  #texts(place: string, json: unknown): readonly string[] {
    if (!Array.isArray(json) || json.length === 0) {
      throw this.#invalid(`${place}: found ${jsonExcerpt(json)}, expected a list of at least one name`);
    }
    return json.map((each) => this.#text(place, each));
  }

  #text(place: string, json: unknown): string {
    if (typeof json === 'string' && json !== '') return json;
    throw this.#invalid(`${place}: found ${jsonExcerpt(json)}, expected a text`);
  }

  #refuseOthers(json: Json, known: readonly string[], place: string): void {
    const other = Object.keys(json).find((name) => !known.includes(name));
    if (other === undefined) return;
    throw this.#invalid(`${place} has the field ${jsonExcerpt(other)}; expected ${known.join(', ')}`);
  }
}

function parseJson(file: string, invalid: (reason: string, cause?: unknown) => TrawlError): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw invalid(`the file of views cannot be read (${(error as Error).message})`, error);
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw invalid(`not valid JSON: ${(error as Error).message}`, error);
  }
}
