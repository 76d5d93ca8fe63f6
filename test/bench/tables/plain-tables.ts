import { withTables } from '../../../bench/tables/marked-tables.ts';

/** A table outside of markers and code blocks. */
export interface PlainTable {
  /** The cells of its first line, joined by ` | `. */
  readonly header: string;
  readonly cells: readonly string[];
}

export function plainTables(page: string): PlainTable[] {
  const text = withTables(page.replaceAll(/^```[^\n]*\n[\s\S]*?^```/gm, ''), () => '');
  const tables: PlainTable[] = [];
  let lines: string[] = [];
  for (const line of [...text.split('\n'), '']) {
    if (line.startsWith('|')) {
      lines.push(line);
      continue;
    }
    if (lines.length > 2) {
      const rows = lines.map(cellsOf);
      tables.push({ header: rows[0]!.join(' | '), cells: rows.slice(2).flat() });
    }
    lines = [];
  }
  return tables;
}

/** The first lines of the tables of a page, marked or not, whose lines differ in their number of cells: GitHub shows no table there. */
export function unevenTables(page: string): string[] {
  const groups = page.replaceAll(/^```[^\n]*\n[\s\S]*?^```/gm, '').match(/(?:^\|.*\n)+/gm) ?? [];
  return groups.flatMap((group) => {
    const lines = group.trimEnd().split('\n');
    return new Set(lines.map((line) => cellsOf(line).length)).size === 1 ? [] : lines[0]!;
  });
}

function cellsOf(line: string): string[] {
  return line
    .replace(/^\|/, '')
    .replace(/\|\s*$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}

/** A number, perhaps with a unit, a range or further numbers: `18 ms`, `10.7 ×`, `0.901`, `1.9 (0.7 to 3)`. */
const FIGURE =
  /^(?:about |less than |at most |≤ ?|~)?[\d][\d.,]*(?:\s?(?:[×%]|µs|ms|s|min|h|[KMGT]?B|GB\/s|queries\/s|[a-z]+\/s))?(?:[,;/ ()–-].*)?$/;

/** Whether most of the filled cells behind the first column are figures. */
export function hasFigures({ cells }: PlainTable): boolean {
  const filled = cells.filter((cell) => cell !== '');
  return filled.filter((cell) => FIGURE.test(cell)).length >= Math.max(2, filled.length / 3);
}
