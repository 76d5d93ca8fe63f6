/** A table in a Markdown page between the lines `<!-- table NAME of FILE -->` and `<!-- end of table -->`. */
export interface MarkedTable {
  readonly name: string;
  /** The file with its figures, relative to the repository. */
  readonly file: string;
  /** What is between the markers, without blank lines around it. */
  readonly content: string;
}

const MARKED = /<!-- table ([a-z0-9-]+) of (\S+) -->\n([\s\S]*?)<!-- end of table -->/g;

export function markedTables(page: string): MarkedTable[] {
  return [...page.matchAll(MARKED)].map(([, name, file, content]) => ({
    name: name!,
    file: file!,
    content: content!.trim(),
  }));
}

/** The page with the content of each marked table replaced. */
export function withTables(page: string, contentOf: (name: string, file: string) => string): string {
  return page.replaceAll(
    MARKED,
    (_whole, name: string, file: string) =>
      `<!-- table ${name} of ${file} -->\n\n${contentOf(name, file)}\n\n<!-- end of table -->`,
  );
}

/** A table outside of markers and code blocks. */
export interface PlainTable {
  /** The cells of its first line, joined by ` | `. */
  readonly header: string;
  readonly cells: readonly string[];
}

export function plainTables(page: string): PlainTable[] {
  const text = page.replaceAll(/^```[^\n]*\n[\s\S]*?^```/gm, '').replaceAll(MARKED, '');
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
