export type TsvFields =
  | { readonly ok: true; readonly fields: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Splits a line at tabs with CSV quoting: a field that starts with `"` ends at the next single `"` and may contain tabs;
 * `""` in it stands for `"`. A quote elsewhere in a field is an ordinary character.
 */
export function splitTsvLine(line: string): TsvFields {
  if (!line.includes('"')) return { ok: true, fields: line.split('\t') };
  const fields: string[] = [];
  let start = 0;
  for (;;) {
    let end: number;
    if (line[start] === '"') {
      const close = closingQuote(line, start + 1);
      if (close === -1) {
        return { ok: false, reason: `the quoted field ${fields.length + 1} has no closing quote on its line` };
      }
      end = close + 1;
      if (end < line.length && line[end] !== '\t') {
        const reason = `text follows the closing quote of field ${fields.length + 1}; double a quote inside quotes`;
        return { ok: false, reason };
      }
      fields.push(line.slice(start + 1, close).replaceAll('""', '"'));
    } else {
      const tab = line.indexOf('\t', start);
      end = tab === -1 ? line.length : tab;
      fields.push(line.slice(start, end));
    }
    if (end >= line.length) return { ok: true, fields };
    start = end + 1;
  }
}

/** Position of the next `"` that is not doubled; -1 if none. */
function closingQuote(line: string, from: number): number {
  let position = line.indexOf('"', from);
  while (position !== -1 && line[position + 1] === '"') position = line.indexOf('"', position + 2);
  return position;
}
