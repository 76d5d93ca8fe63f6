import { checkRow, type ReadRow } from './check-row.ts';
import type { CorpusFormat, ReaderContext } from './corpus-format.ts';
import { parseJson } from './parse-json.ts';
import { readLines } from './read-lines.ts';
import type { ColumnNames } from './row-columns.ts';

/** JSON Lines: one object per line, lines end with `\n` only. Blank lines are skipped. */
export const jsonl = {
  name: 'jsonl',
  extensions: ['.jsonl', '.ndjson'],
  content: 'one JSON object per line',
  newline: 'lf',
  rows: readJsonl,
} as const satisfies CorpusFormat;

async function* readJsonl(context: ReaderContext): AsyncGenerator<readonly ReadRow[], void> {
  for await (const lines of readLines(context.path, { ...context, newline: jsonl.newline })) {
    const rows: ReadRow[] = [];
    for (const line of lines) {
      if (!line.ok) {
        rows.push({ ok: false, line: line.number, reason: line.reason });
        continue;
      }
      const document = trimJson(line.text);
      if (document !== '') rows.push(parseRow(line.number, document, context.columns));
    }
    yield rows;
  }
}

function parseRow(line: number, text: string, columns: ColumnNames): ReadRow {
  const parsed = parseJson(text);
  if (!parsed.ok) return { ok: false, line, reason: parsed.reason };
  // In valid JSON a carriage return can only be white space between tokens. A document must be a single line.
  const document = text.includes('\r') ? text.replaceAll('\r', ' ') : text;
  return checkRow(line, parsed.value, document, columns);
}

/** Trims JSON white space only: `trim` removes more, which would make some invalid JSON valid. */
function trimJson(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isJsonSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isJsonSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isJsonSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d;
}
