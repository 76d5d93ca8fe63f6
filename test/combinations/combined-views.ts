import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import { withoutQuotes } from '../../src/index/passages/document-fields.ts';
import type { ViewDefinition } from '../../src/index/views/view-definition.ts';
import { COLUMNS } from '../engine/filter/arbitrary-filters.ts';
import { passes } from '../engine/filter/naive-filter.ts';
import type { CorpusRow } from './naive-index.ts';

const BLOCKED_IDS = [
  ...Array.from({ length: 8 }, (_, i) => String(8 * i)),
  'wiki-3',
  'wiki-5',
  'news-6',
  'news-7',
  'none',
];
const BLOCKED_TITLES = ['river', 'king', 'none'];
const KNOWN_SOURCE = parseFilterExpression('source exists or size > 0');
const BEFORE = '2020-02-29';

/** Views of the combined world by name, and whether a passage is in them: the definition of docs/views.md. */
const IS_IN_VIEW: Readonly<Record<string, (passage: CorpusRow) => boolean>> = {
  train: ({ id, contents }) => {
    const [title] = contents.split('\n');
    return (
      !BLOCKED_IDS.includes(String(id)) && !(contents.includes('\n') && BLOCKED_TITLES.includes(withoutQuotes(title!)))
    );
  },
  past: (passage) =>
    passes(KNOWN_SOURCE, passage, COLUMNS) &&
    !passes({ column: 'meta.date', op: '>=', value: BEFORE }, passage, COLUMNS),
};

export const VIEW_NAMES: readonly string[] = Object.keys(IS_IN_VIEW);

/** Whether a passage may be found by requests in a view, or by all requests. */
export function isInView(name: string | undefined, passage: CorpusRow): boolean {
  return name === undefined || IS_IN_VIEW[name]!(passage);
}

/** Writes the lists of the views into a folder. */
export function combinedViews(folder: string): readonly ViewDefinition[] {
  const list = (name: string, entries: readonly string[]): readonly string[] => {
    const path = join(folder, name);
    writeFileSync(path, entries.map((entry) => `${entry}\n`).join(''));
    return [path];
  };
  return [
    { name: 'train', blockIds: list('blocked-ids', BLOCKED_IDS), blockTitles: list('blocked-titles', BLOCKED_TITLES) },
    { name: 'past', filter: KNOWN_SOURCE, date: { column: 'meta.date', before: BEFORE, undated: 'keep' } },
  ];
}
