import type { OptionTable } from '../../src/base/options/option-spec.ts';

/** The option of the commands that make columns for filters; `parseColumns` reads it. */
export const COLUMN_OPTIONS = {
  column: {
    type: 'list',
    value: 'NAME:TYPE',
    help: 'A column of the corpus that searches can filter by (--filter): its key in the rows (meta.date for nested keys) and its type: string, number, boolean or date (2020-01-31 or 2020-01-31T12:30:00Z). A row may have no value, or an array of values; a value of another type is an error. Repeat it for several columns.',
  },
} as const satisfies OptionTable;
