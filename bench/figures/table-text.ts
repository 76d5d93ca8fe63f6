import { elementsAt, numberAt, type PathScope, valueAt } from './result-path.ts';
import { FORMATS } from './table-formats.ts';

/** A line for each element of a list. */
export interface ListedTable {
  /** The path of the list. */
  readonly each: string;
  /** Of elements with the same value here only the first has a line. */
  readonly distinct?: string | undefined;
  /** Whether the largest figure of each column is bold. */
  readonly boldBest?: boolean | undefined;
  /** Header → template of the cell, which is read from the element. */
  readonly columns: Readonly<Record<string, string>>;
}

/** A line for each label, whose template is read from the whole result. */
export interface FactsTable {
  readonly head: readonly [string, string];
  readonly facts: Readonly<Record<string, string>>;
}

/** How a table is made from a JSON result; a function makes header and lines itself. */
export type Table = ListedTable | FactsTable | ((result: never) => readonly (readonly string[])[]);

const FIGURE = /^(?:(?:p50 |[−+<*]* ?)\d|$)/;

/** The Markdown of a table. */
export function tableText(table: Table, result: unknown): string {
  const [head, ...lines] = linesOf(table, result);
  // Columns of figures are to the right, but for the mixed ones of a table of facts.
  const isText = (column: number): boolean =>
    (typeof table === 'object' && 'facts' in table) || lines.some((line) => !FIGURE.test(line[column]!));
  const rule = head!.map((_, i) => (isText(i) ? '---' : '---:'));
  return [head!, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function linesOf(table: Table, result: unknown): readonly (readonly string[])[] {
  if (typeof table === 'function') return table(result as never);
  if ('facts' in table) {
    const scope = { line: result, result };
    const lines = Object.entries(table.facts).map((line) => line.map((template) => filled(template, scope)));
    return [table.head, ...lines];
  }
  const { each, distinct, boldBest, columns } = table;
  const all = elementsAt(each, { line: result, result });
  const seen = new Set<unknown>();
  const chosen = all.filter((line) => {
    if (distinct === undefined) return true;
    const key = valueAt(distinct, { line, result });
    return !seen.has(key) && seen.add(key);
  });
  if (chosen.length === 0) throw new RangeError(`${each} has no elements, so the table would have no lines.`);
  const lines = chosen.map((line) => Object.values(columns).map((cell) => filled(cell, { line, result })));
  return [Object.keys(columns), ...(boldBest ? withBoldBest(lines) : lines)];
}

function withBoldBest(lines: readonly (readonly string[])[]): string[][] {
  const best = (column: number): string =>
    lines
      .map((line) => line[column]!)
      .sort()
      .at(-1)!;
  return lines.map((line) => line.map((cell, i) => (i > 0 && cell === best(i) ? `**${cell}**` : cell)));
}

/**
 * A template with its values. `{path:format}` is a value of the result (result-path.ts) in one of the FORMATS, or with that number of decimals;
 * `{.}` is the line itself. A missing value leaves the whole text empty; with `{path:format:text}` the text stands in its place.
 */
export function filled(template: string, scope: PathScope): string {
  let missing = false;
  const text = template.replaceAll(
    /\{([^{}:]+)(?::(\w*))?(?::([^{}]*))?\}/g,
    (_, path: string, format = '', other?: string) => {
      const value = / [/*] /.test(path) ? numberAt(path, scope) : path === '.' ? scope.line : valueAt(path, scope);
      if (value === undefined || value === null) {
        missing ||= other === undefined;
        return other ?? '';
      }
      return /^\d+$/.test(format) ? (value as number).toFixed(Number(format)) : formatted(value, format);
    },
  );
  return missing ? '' : text;
}

function formatted(value: unknown, format: string): string {
  if (format === '') return String(value);
  const write = FORMATS[format];
  if (write === undefined)
    throw new RangeError(
      `There is no format ${format}; expected ${Object.keys(FORMATS).join(', ')}, or a number of decimals.`,
    );
  return write(value as never);
}
