import { TrawlError } from '../../base/errors.ts';

/** What a column of the corpus holds. A row may have several values of the type, or none. */
export const COLUMN_TYPES = ['string', 'number', 'boolean', 'date'] as const;
export type ColumnType = (typeof COLUMN_TYPES)[number];

/** A column of the corpus that filters can name. */
export interface Column {
  /** Its key in a corpus row. Dots separate the keys of nested objects: `meta.source`. */
  readonly name: string;
  readonly type: ColumnType;
}

/**
 * Parses the values of `--column`, such as `meta.date:date`.
 *
 * @throws TrawlError USAGE if a value is not NAME:TYPE, or if a name repeats.
 */
export function parseColumns(texts: readonly string[]): readonly Column[] {
  const columns = texts.map(parseColumn);
  const repeated = columns.find(({ name }, i) => columns.findIndex((other) => other.name === name) < i);
  if (repeated !== undefined) {
    throw new TrawlError('USAGE', `--column names ${JSON.stringify(repeated.name)} twice. Name each column once.`);
  }
  return columns;
}

function parseColumn(text: string): Column {
  const colon = text.lastIndexOf(':');
  const name = text.slice(0, Math.max(0, colon));
  const type = COLUMN_TYPES.find((known) => known === text.slice(colon + 1));
  if (name === '' || type === undefined) {
    throw new TrawlError(
      'USAGE',
      `--column is ${JSON.stringify(text)}; expected NAME:TYPE with the type ${COLUMN_TYPES.slice(0, -1).join(', ')} or ` +
        `${COLUMN_TYPES.at(-1)}, such as source:string or meta.date:date.`,
    );
  }
  return { name, type };
}
