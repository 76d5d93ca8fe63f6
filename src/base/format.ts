const BYTE_UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** Decimal units: 64.6 GB is 64.6 × 10^9 bytes. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // A value that would be rounded to 1000 is 1.00 of the next unit.
  while (value >= (unit === 0 ? 1000 : 999.95) && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${BYTE_UNITS[unit]}`;
}

/**
 * Escapes the control characters, except newlines and tabs, of an untrusted text (a model card, a path, a server's response): they
 * could control the terminal.
 */
export function printable(text: string): string {
  const codePoint = (char: string): string => `\\u{${char.codePointAt(0)!.toString(16)}}`;
  return text.replace(/(?![\n\t])[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, codePoint);
}

/** 21015324 → 21,015,324 */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** 1, 'passage' → 1 passage; 2,500, 'passage' → 2,500 passages. For nouns whose plural ends in s. */
export function formatNumberOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** 0.734 → 73.4 %; null → –. */
export function formatPercent(share: number | null): string {
  return share === null ? '–' : `${(100 * share).toFixed(1)} %`;
}

/** A count with its share of a whole: 12 (3.4 %); null → –. */
export function formatPart(count: number | null, whole: number): string {
  if (count === null) return '–';
  return whole === 0 ? String(count) : `${formatCount(count)} (${formatPercent(count / whole)})`;
}

/** A difference with its sign: +0.0125. A difference that rounds to 0 has none. */
export function formatChange(difference: number): string {
  const text = difference.toFixed(4);
  return difference > 0 ? `+${text}` : text.replace(/^-(0\.0+)$/, '$1');
}

/** The text on one line of at most `width` characters, cut with an ellipsis. */
export function formatLine(text: string, width: number): string {
  const line = printable(text).replaceAll(/\s*[\n\t]\s*/g, ' ');
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

/** Wraps a paragraph into lines of at most `width` characters, indentation included. A longer word has its own line. */
export function wrapParagraph(text: string, { indent, width }: { indent: number; width: number }): string[] {
  const margin = ' '.repeat(indent);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && indent + line.length + 1 + word.length > width) {
      lines.push(margin + line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, margin + line];
}

/** Rows as lines of aligned columns: the first column to the left, the others to the right, or all to the left. */
export function formatTable(rows: readonly (readonly string[])[], { allLeft = false } = {}): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (allLeft || i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}

/** The text, quoted for a shell if needed. */
export function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
