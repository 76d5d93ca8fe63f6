export type TsvFields =
  | { readonly ok: true; readonly fields: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Splits a line at its tabs as CSV does: a field that starts with `"` goes on to the next single `"`, may hold tabs,
 * and `""` in it stands for one `"`. A quote elsewhere in a field is an ordinary character.
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
        return { ok: false, reason: `the quoted field ${fields.length + 1} does not end on its line` };
      }
      end = close + 1;
      if (end < line.length && line[end] !== '\t') {
        const reason = `the quoted field ${fields.length + 1} goes on after its closing quote; write a quote inside quotes twice`;
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

/** The position of the first `"` from `from` on that is not doubled; -1 if there is none. */
function closingQuote(line: string, from: number): number {
  let position = line.indexOf('"', from);
  while (position !== -1 && line[position + 1] === '"') position = line.indexOf('"', position + 2);
  return position;
}
